package rule

import (
	"fmt"
	"time"
)

const (
	// MaxBanAfter is the largest number of denials before a ban. It is bounded because Redis stores the time of each
	// denial in 7 bytes.
	MaxBanAfter = 1000

	// minBan and maxBan bound the durations Within and For of a ban.
	minBan, maxBan = time.Millisecond, 366 * Day
)

// Ban is the part of a rule for buckets that deny repeatedly. After is a number of denied Consumes. If a bucket denies
// so many Consumes in less than the time Within, the last denial begins a ban. The ban lasts for the time For, and the
// bucket denies everything during it. Denials during a ban do not count. The zero value means that the rule has no ban.
type Ban struct {
	After       int64         // 1..MaxBanAfter; 0: no ban
	Within, For time.Duration // whole ms, 1 ms to 366 days
}

// BanSpec is a ban as it is written in the catalogue; the zero value means no ban.
type BanSpec struct {
	After  int64
	Within string // in the format of time.ParseDuration
	For    string
}

// compileBan sets Ban. The error is a *FieldError.
func (r *Rule) compileBan(spec BanSpec) error {
	if spec == (BanSpec{}) {
		return nil
	}
	if r.Kind == KindConcurrency {
		return &FieldError{"ban", "must be absent: it counts denied requests, and leases are no requests"}
	}
	if spec.After < 1 || spec.After > MaxBanAfter {
		return &FieldError{"ban.after", fmt.Sprintf("%d is not from 1 to %d", spec.After, MaxBanAfter)}
	}
	r.Ban.After = spec.After
	var err error
	if r.Ban.Within, err = banTime("ban.within", spec.Within); err != nil {
		return err
	}
	r.Ban.For, err = banTime("ban.for", spec.For)
	return err
}

func banTime(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < minBan || d > maxBan || d%time.Millisecond != 0 {
		return 0, &FieldError{field, fmt.Sprintf("%q is not a time as 90s, 10m or 24h, of whole ms, from 1ms to 8784h", clip(text))}
	}
	return d, nil
}

// BanState has the recent denials of a bucket, or its ban. The zero value has no denials and no ban.
type BanState struct {
	ends    int64   // µs; when the ban ends; 0 if there was none yet
	denials []int64 // µs; ascending
}

// Left returns the time from now until the ban ends, in µs, or 0 if there is no ban. If the ban would last longer
// than For, because the rule has changed or the clock was set back, Left shortens it to For.
func (s *BanState) Left(b Ban, now int64) int64 {
	s.ends = min(s.ends, now+b.For.Microseconds())
	return max(0, s.ends-now)
}

// Deny counts a denial of a bucket that is not banned. If the denial begins a ban, Deny returns the length of the ban
// in µs, else 0.
func (s *BanState) Deny(b Ban, now int64) int64 {
	kept := s.denials[:0]
	for _, at := range s.denials {
		if at > now-b.Within.Microseconds() {
			kept = append(kept, min(at, now))
		}
	}
	s.denials, s.ends = append(kept, now), 0
	if int64(len(s.denials)) < b.After {
		return 0
	}
	*s = BannedFor(b.For.Microseconds(), now)
	return b.For.Microseconds()
}

// BannedFor returns the state of a bucket that is banned for the next us µs.
func BannedFor(us, now int64) BanState { return BanState{ends: now + us} }

// Over reports whether the state can be dropped at now, because its ban has ended and none of its denials counts any
// more.
func (s *BanState) Over(b Ban, now int64) bool {
	n := len(s.denials)
	return s.ends <= now && (n == 0 || s.denials[n-1] <= now-b.Within.Microseconds())
}
