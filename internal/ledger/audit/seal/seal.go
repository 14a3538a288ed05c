package seal

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// format is the version of records, heads and files.
const format = 1

// FileMax bounds a seal's file in bytes. The file of a log of 2^40 days has 20 kB.
const FileMax = 64 << 10

// Record is the record of a day in the log of seals.
type Record struct {
	Database string // database id
	Day      string // such as 2026-11-22, in UTC
	Heads    int64  // balances that had new entries
	Root     Hash   // root of the Merkle tree of their heads
}

// hash returns the record's hash in the log.
func (r *Record) hash() Hash {
	return tlog.RecordHash(fmt.Appendf(nil, "quotasvc seal %d\n%s\n%s\n%d\n%s\n", format, r.Database, r.Day, r.Heads, r.Root))
}

// Tree is the size and root of the log at some time.
type Tree struct {
	Size int64 `json:"size"` // records
	Root Hash  `json:"root"`
}

// Seal is a sealed day as it is exported.
type Seal struct {
	Format     int       `json:"format"`
	Database   string    `json:"database_id"`
	Day        string    `json:"day"`
	Position   int64     `json:"position"` // position in the log, from 0
	Heads      int64     `json:"heads"`
	Root       Hash      `json:"root"` // root of the day's heads
	SealedAt   time.Time `json:"sealed_at"`
	Checkpoint string    `json:"checkpoint"` // the log with this seal as its newest record
	// Inclusion proves that the checkpoint's log contains this record.
	Inclusion []Hash `json:"inclusion_proof"`
	// Previous is the log before this seal. Consistency proves that the checkpoint's log begins with Previous. In the
	// first seal, both fields are empty.
	Previous    *Tree  `json:"previous"`
	Consistency []Hash `json:"consistency_proof"`

	tree Tree // the checkpoint's tree
}

// Record returns the record of the seal.
func (s *Seal) Record() *Record {
	return &Record{Database: s.Database, Day: s.Day, Heads: s.Heads, Root: s.Root}
}

// Tree returns the log of the seal's checkpoint.
func (s *Seal) Tree() Tree { return s.tree }

// New returns the seal of the newest record of a log. The seal has no checkpoint yet.
func New(l *Log, r *Record, sealedAt time.Time) (*Seal, error) {
	position := l.size - 1
	s := &Seal{
		Format: format, Database: r.Database, Day: r.Day, Position: position, Heads: r.Heads, Root: r.Root, SealedAt: sealedAt.UTC(),
		Consistency: []Hash{},
	}
	var err error
	if s.tree, err = l.tree(l.size); err != nil {
		return nil, err
	}
	inclusion, err := tlog.ProveRecord(l.size, position, l)
	if err != nil {
		return nil, fmt.Errorf("prove the seal of %s: %w", r.Day, err)
	}
	s.Inclusion = append([]Hash{}, inclusion...) // never null
	if position == 0 {
		return s, nil
	}
	before, err := l.tree(position)
	if err != nil {
		return nil, err
	}
	s.Previous = &before
	if s.Consistency, err = tlog.ProveTree(l.size, position, l); err != nil {
		return nil, fmt.Errorf("prove the log of %s: %w", r.Day, err)
	}
	return s, nil
}

func (l *Log) tree(size int64) (Tree, error) {
	root, err := l.RootAt(size)
	if err != nil {
		return Tree{}, fmt.Errorf("root of the log: %w", err)
	}
	return Tree{Size: size, Root: root}, nil
}

// origin is the beginning of the first line of checkpoints. The id of the database follows.
const origin = "quotasvc/seals/"

// Sign writes the seal's checkpoint. With a nil signer the checkpoint is not signed.
func (s *Seal) Sign(signer Signer) error {
	s.Checkpoint = fmt.Sprintf("%s%s\n%d\n%s\n", origin, s.Database, s.tree.Size, s.tree.Root)
	if signer == nil {
		return nil
	}
	signed, err := note.Sign(&note.Note{Text: s.Checkpoint}, signer)
	if err != nil {
		return fmt.Errorf("sign the checkpoint: %w", err)
	}
	s.Checkpoint = string(signed)
	return nil
}

// Signer returns the name of the key that signed the checkpoint. It returns an empty name if the checkpoint is not
// signed. It does not verify the signature.
func (s *Seal) Signer() string {
	_, signatures, _ := strings.Cut(s.Checkpoint, "\n\n")
	line, found := strings.CutPrefix(signatures, "— ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(line, " ")
	return name
}

// Encode returns the file of the seal.
func (s *Seal) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the seal of %s: %w", s.Day, err)
	}
	return append(text, '\n'), nil
}

// Parse reads a seal's file and checks that its parts agree. If verifier is not nil, the checkpoint must be signed by
// the key of verifier.
func Parse(text []byte, verifier Verifier) (*Seal, error) {
	if len(text) > FileMax {
		return nil, fmt.Errorf("has %d bytes; a seal has at most %d", len(text), FileMax)
	}
	var s Seal
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("is not the JSON of a seal: %w", err)
	}
	if s.Format != format {
		return nil, fmt.Errorf("format is %d; this version reads format %d", s.Format, format)
	}
	if _, err := time.Parse(time.DateOnly, s.Day); err != nil {
		return nil, fmt.Errorf("day %q is not a day such as 2026-11-22", s.Day)
	}
	if err := s.readCheckpoint(verifier); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if s.Position != s.tree.Size-1 {
		return nil, fmt.Errorf("position is %d; that of the newest of %d records is %d", s.Position, s.tree.Size, s.tree.Size-1)
	}
	if err := tlog.CheckRecord(s.Inclusion, s.tree.Size, s.tree.Root, s.Position, s.Record().hash()); err != nil {
		return nil, fmt.Errorf("the checkpoint does not contain what the seal says of %s: %w", s.Day, err)
	}
	if err := s.checkPrevious(); err != nil {
		return nil, err
	}
	return &s, nil
}

func (s *Seal) checkPrevious() error {
	switch {
	case s.Previous == nil && s.Position > 0:
		return errors.New("previous is missing")
	case s.Previous == nil:
		return nil
	case s.Previous.Size != s.Position:
		return fmt.Errorf("previous has size %d, and the seal is record %d", s.Previous.Size, s.Position)
	}
	if err := tlog.CheckTree(s.Consistency, s.tree.Size, s.tree.Root, s.Previous.Size, s.Previous.Root); err != nil {
		return fmt.Errorf("the checkpoint's log does not begin with the previous one: %w", err)
	}
	return nil
}

// readCheckpoint reads the size and the root of the log.
func (s *Seal) readCheckpoint(verifier Verifier) error {
	body, signatures, signed := strings.Cut(s.Checkpoint, "\n\n")
	switch {
	case verifier != nil && !signed:
		return fmt.Errorf("is not signed; the key of %s was asked for", verifier.Name())
	case verifier != nil:
		if _, err := note.Open([]byte(s.Checkpoint), note.VerifierList(verifier)); err != nil {
			return fmt.Errorf("is not signed by the key of %s: %w", verifier.Name(), err)
		}
	case signed && !strings.HasPrefix(signatures, "— "):
		return errors.New("its signature cannot be read")
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if len(lines) != 3 {
		return fmt.Errorf("has %d lines; must have 3", len(lines))
	}
	if lines[0] != origin+s.Database {
		return fmt.Errorf("is of %q; must be of %q", lines[0], origin+s.Database)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 1 {
		return fmt.Errorf("size %q is not a number from 1", lines[1])
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return fmt.Errorf("root %q is not %d bytes in base64", lines[2], tlog.HashSize)
	}
	s.tree.Size = size
	copy(s.tree.Root[:], root)
	return nil
}
