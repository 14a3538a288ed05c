package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quotasvc/quotasvc/client"
)

// pageMax is the largest number of items on a page of the API.
const pageMax = 500

// rawItem is the unchanged JSON text of an item of a list.
type rawItem = jsonText

type jsonText json.RawMessage

// MarshalJSON returns t unchanged.
func (t jsonText) MarshalJSON() ([]byte, error) { return t, nil }

// UnmarshalJSON stores a copy of text in t.
func (t *jsonText) UnmarshalJSON(text []byte) error {
	*t = append((*t)[:0:0], text...)
	return nil
}

func (t jsonText) into(v any) error {
	if err := json.Unmarshal(t, v); err != nil {
		return fmt.Errorf("an item of the answer cannot be read: %w", err)
	}
	return nil
}

// given returns a query with the parameters that are not empty.
func given(parameters map[string]string) url.Values {
	q := url.Values{}
	for name, value := range parameters {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// eachItem calls the function `do` with each item of a list, page after page. It stops after limit items; if limit is
// 0, it does not stop early.
func eachItem(ctx context.Context, s *client.Client, path string, q url.Values, limit int, do func(rawItem) error) error {
	for n := 0; ; {
		size := pageMax
		if limit > 0 {
			size = min(size, limit-n)
		}
		q.Set("limit", strconv.Itoa(size))
		var page struct {
			Items      []rawItem `json:"items"`
			NextCursor *string   `json:"next_cursor"`
		}
		if err := s.Do(ctx, http.MethodGet, path, q, nil, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := do(item); err != nil {
				return err
			}
			if n++; n == limit {
				return nil
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" {
			return nil
		}
		q.Set("cursor", *page.NextCursor)
	}
}
