package body

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// order is an object like those of the catalogue.
type order struct {
	ID      string            `json:"order"`
	Size    int64             `json:"size,omitzero"` // 1 to 10; 0: not known
	Price   int64             `json:"price"`
	Cap     *int64            `json:"cap,omitzero"`
	Gift    bool              `json:"gift"`
	Due     time.Time         `json:"due,omitzero"`
	Parts   []part            `json:"parts"`
	Extra   *part             `json:"extra,omitzero"`
	Note    json.RawMessage   `json:"note,omitzero"`
	Amounts map[string]int64  `json:"amounts,omitempty"`
	Changes map[string]*int64 `json:"changes,omitempty"`
	Secret  string            `json:"-"`
}

type part struct {
	Kind string `json:"kind"`
}

func (o *order) Check(given Given) []Fault {
	var f Faults
	if !bound.ID(o.ID) {
		f.Add("order", bound.MustBeID)
	}
	if (o.Size != 0 || given.Has("size")) && (o.Size < 1 || o.Size > 10) {
		f.Add("size", bound.MustBeInteger(1, 10))
	}
	for i := range o.Parts {
		at := fmt.Sprintf("parts[%d]", i)
		if o.Parts[i].Kind == "" && given.In(at).Has("kind") {
			f.Add(at+".kind", "must be given a kind")
		}
	}
	return f
}

func read(text string, o Options) (order, []string) {
	var d Document
	var got order
	err := d.JSON([]byte(text), &got, o)
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return got, nil
	}
	var faults []string
	for i := range refused.Faults {
		faults = append(faults, refused.Faults[i].Error())
	}
	return got, faults
}

func TestJSON_ReadsEveryFieldByItsTag(t *testing.T) {
	t.Parallel()
	got, faults := read(`{"order":"o1","size":3,"price":7,"cap":0,"gift":true,"due":"2026-01-31T00:00:00.123456789+01:00",
		"parts":[{"kind":"a"},{"kind":"b"}],"extra":{"kind":"c"},"note":{"b":1, "a":null},"amounts":{"m":5},"changes":{"m":null,"n":6}}`, Options{})
	six, zero := int64(6), int64(0)
	want := order{
		ID: "o1", Size: 3, Price: 7, Cap: &zero, Gift: true, Due: time.Date(2026, 1, 30, 23, 0, 0, 123456000, time.UTC),
		Parts: []part{{"a"}, {"b"}}, Extra: &part{"c"}, Note: json.RawMessage(`{"a":null,"b":1}`), Amounts: map[string]int64{"m": 5},
		Changes: map[string]*int64{"m": nil, "n": &six},
	}
	assert.Equal(t, want, got)
	assert.True(t, faults == nil, "%q", faults)
}

func TestJSON_ListsAllFaultsByPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{}`:                               {"order is required", "price is required", "parts is required"},
		`{"order":5,"price":1,"parts":[]}`: {"order " + bound.MustBeID},
		`{"order":"o","price":1,"parts":[],"size":0}`:          {"size must be an integer from 1 to 10"},
		`{"order":"o","price":1,"parts":[],"size":1.5}`:        {"size must be an integer from 1 to 10; there are no fractions: count in a smaller unit"},
		`{"order":"o","price":-1,"parts":[],"cap":null}`:       {"price must be an integer from 0 to 9007199254740991"},
		`{"order":null,"price":1,"parts":{},"extra":null}`:     {"order " + bound.MustBeID, "parts must be an array"},
		`{"order":"o","price":1,"parts":[{"kind":1},2,{}]}`:    {"parts[0].kind must be given a kind", "parts[1] must be an object", "parts[2].kind is required"},
		`{"order":"o","price":1,"parts":[],"gift":1}`:          {"gift must be true or false"},
		`{"order":"o","price":1,"parts":[],"Secret":"x"}`:      {"Secret is an unknown field"},
		`{"order":"o","price":1,"parts":[],"due":"yesterday"}`: {"due " + MustBeInstant()},
		`{"order":"o","price":1,"parts":[],"amounts":{"a b":1,"m":null}}`: {
			"amounts.a b is not the name of a meter, which " + bound.MustBeID, "amounts.m must be an integer from 0 to 9007199254740991",
		},
		`{"order":"o","order":"p"}`:                {"order is a duplicate field"},
		`{"order":"o","price":1,"parts":[]} {}`:    {"body must end after the JSON object"},
		`{"order":"o","price":1,"parts":[],"size"`: {"body is not JSON: it ends early, at byte 40"},
		``:   {"body must be a JSON object; it is empty"},
		`[]`: {"body must be an object"},
	} {
		_, got := read(text, Options{})
		assert.Equal(t, want, got, text)
	}
}

func TestJSON_WithoutLeavesFieldsToThePath(t *testing.T) {
	t.Parallel()
	var d Document
	got := order{ID: "o1"}
	err := d.JSON([]byte(`{"price":1,"parts":[]}`), &got, Options{Without: []string{"order"}})
	assert.True(t, err == nil && got.ID == "o1", "%+v, %v", got, err)
	err = d.JSON([]byte(`{"order":"o2","price":1,"parts":[]}`), &got, Options{Without: []string{"order"}})
	assert.True(t, err != nil && err.Error() == "order is an unknown field" && got.ID == "o1", "%+v, %v", got, err)
}

func TestJSON_FileTakesNullForAnAbsentField(t *testing.T) {
	t.Parallel()
	got, faults := read(`{"order":"o","price":1,"parts":null,"size":null,"extra":null,"amounts":{"m":null}}`, Options{File: true})
	assert.True(t, faults == nil && len(got.Amounts) == 0 && got.Extra == nil, "%+v, %q", got, faults)
	_, faults = read(`{"order":5,"price":null}`, Options{File: true})
	assert.Equal(t, []string{"order must be text; quote it if it looks like a number", "price is required"}, faults)
}

func TestJSON_ReportsAtMost32Faults(t *testing.T) {
	t.Parallel()
	_, faults := read(`{"order":"o","price":1,"parts":[`+strings.Repeat("{},", 5000)+`{}]}`, Options{})
	assert.Len(t, faults, faultsMax, "faults")
}

func TestFields_RequiredUnlessTagOrKindSaysOtherwise(t *testing.T) {
	t.Parallel()
	var required []string
	for _, f := range Fields(reflect.TypeFor[order](), []string{"order"}) {
		if f.Required {
			required = append(required, f.Name)
		}
	}
	assert.Equal(t, []string{"price", "parts"}, required)
}

// JSON never panics. If it accepts a text, it reads the same values as encoding/json.
func TestJSON_AcceptsNothingThatJSONReadsOtherwise(t *testing.T) {
	t.Parallel()
	const good = `{"order":"o1","size":3,"price":7,"cap":0,"gift":true,"parts":[{"kind":"a"}],"extra":{"kind":"c"},"amounts":{"m":5}}`
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(good)
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			piece := rapid.SampledFrom([]string{"", ":", "{", "}", "[", "]", "null", "1", "-", "e3", "\"", "\\", ",", "x", " "}).Draw(t, "piece")
			text = append(append(append([]byte{}, text[:at]...), piece...), text[min(len(text), at+rapid.IntRange(0, 2).Draw(t, "cut")):]...)
		}
		got, faults := read(string(text), Options{})
		if faults != nil {
			return
		}
		var want order
		require.NoError(t, json.Unmarshal(text, &want), "%s: accepted, but", text)
		require.Equal(t, want, got, text)
	})
}
