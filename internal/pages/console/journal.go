package console

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

const (
	entriesPerPage = 100

	// csvRowsMax is the maximum number of rows of a CSV file. If rows are missing, the last row says so.
	csvRowsMax = 50_000
)

// kinds returns the kinds of entries by which the journal can be filtered.
func kinds() []client.EntryKind {
	return []client.EntryKind{
		client.EntryKindDebit, client.EntryKindGrant, client.EntryKindRefund, client.EntryKindHold, client.EntryKindCapture, client.EntryKindRelease,
		client.EntryKindOverage, client.EntryKindAdjustUp, client.EntryKindAdjustDown, client.EntryKindAmend, client.EntryKindVoid,
		client.EntryKindExtendGrant, client.EntryKindExpire,
		client.EntryKindRolloverIn, client.EntryKindRolloverOut, client.EntryKindDenial,
	}
}

// journalView is the data of one page with entries of the journal.
type journalView struct {
	*tenantView

	filter   client.ListEntriesQuery
	from, to string // as entered, in the tenant's zone
	page     *client.EntryList
}

// dayIn parses a day or a local time in a zone. It returns the zero time if the text is empty.
func dayIn(field, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &failure{
		status: http.StatusBadRequest, title: "This is not a time", detail: "Enter a day such as 2026-11-25, or a time such as 2026-11-25T14:05.",
		fields: []client.FieldError{{Field: field, Message: "is not a day or a time: " + clip(text)}},
	}
}

// clip returns at most 60 characters of a text that a person has entered, for an error message.
func clip(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "\u2026"
	}
	return s
}

// entriesQuery sets the filters of the journal from the URL's query.
func (v *journalView) entriesQuery(c *call) error {
	q := c.r.URL.Query()
	v.from, v.to = q.Get("from"), q.Get("to")
	v.filter = client.ListEntriesQuery{
		Meter: q.Get("meter"), Subject: q.Get("subject"), Kind: q.Get("kind"), Order: q.Get("order"), Limit: entriesPerPage, Cursor: q.Get("cursor"),
	}
	v.filter.Order = cmp.Or(v.filter.Order, "desc")
	var err error
	if v.filter.From, err = dayIn("from", v.from, v.zone); err != nil {
		return err
	}
	v.filter.To, err = dayIn("to", v.to, v.zone)
	return err
}

// link returns the path of the journal's page or of its CSV file, with the same filters. The entries start at the
// cursor.
func (v *journalView) link(file, cursor string) string {
	f := v.filter
	return with(path("tenants", v.Tenant.Tenant, file), "meter", f.Meter, "subject", f.Subject, "kind", f.Kind, "order", f.Order, "from", v.from, "to", v.to, "cursor", cursor)
}

// showJournal shows a page of the journal.
func showJournal(c *call, t *tenantView) error {
	v := &journalView{tenantView: t}
	if err := v.entriesQuery(c); err != nil {
		return err
	}
	v.meter = v.filter.Meter
	var err error
	if v.page, err = c.ListEntries(c.ctx, t.Tenant.Tenant, v.filter); err != nil {
		return err
	}
	return c.render(http.StatusOK, journalPage(c, v))
}

// sheet sends the headers of a CSV file, and returns the writer of its rows.
func (c *call) sheet(name string) *csv.Writer {
	h := c.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+cleanName(name)+`"`)
	return csv.NewWriter(c.w)
}

// cleanName returns a file name. It replaces characters that some file systems do not allow by underscores.
func cleanName(name string) string { return strings.Map(inFileName, name) }

func inFileName(r rune) rune {
	if r < ' ' || r > '~' || strings.ContainsRune(`"\/:*?<>|`, r) {
		return '_'
	}
	return r
}

// cell returns text for a cell of a CSV file. If a spreadsheet would run the text as a formula, the result has an
// apostrophe in front.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// sendJournal sends the entries of the journal as a CSV file, with the filters of the page.
func sendJournal(c *call, t *tenantView) error {
	v := &journalView{tenantView: t}
	if err := v.entriesQuery(c); err != nil {
		return err
	}
	v.filter.Limit, v.filter.Cursor = 500, ""
	page, err := c.ListEntries(c.ctx, t.Tenant.Tenant, v.filter) // before the file begins, so that an error can be a page
	if err != nil {
		return err
	}
	w := c.sheet(t.Tenant.Tenant + "-journal.csv")
	_ = w.Write([]string{"seq", "created_at", "kind", "meter", "unit", "amount", "remaining_after", "grant", "source", "subject", "operation_id", "actor", "metadata"})
	for rows := 0; ; {
		for i := range page.Items {
			e := &page.Items[i]
			_ = w.Write([]string{
				strconv.FormatInt(e.Seq, 10), machine(e.CreatedAt), string(e.Kind), e.Meter, cell(t.unit(e.Meter)), strconv.FormatInt(e.Amount, 10),
				strconv.FormatInt(e.RemainingAfter, 10), cell(e.Grant), e.Source, cell(e.Subject), cell(e.OperationID), e.Actor, cell(compact(e.Metadata)),
			})
		}
		rows += len(page.Items)
		if page.NextCursor == nil {
			break
		}
		if rows >= csvRowsMax {
			_ = w.Write([]string{"cut here: narrow the filters to get the rest"})
			break
		}
		v.filter.Cursor = *page.NextCursor
		if page, err = c.ListEntries(c.ctx, t.Tenant.Tenant, v.filter); err != nil {
			_ = w.Write([]string{"cut here: " + explain(err).title})
			break
		}
	}
	w.Flush()
	return nil
}
