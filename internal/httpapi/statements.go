package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const typeCSV = "text/csv"

// getStatement answers with the statement of one period, as JSON or CSV.
func (s *Server) getStatement(rc *request) error {
	name := rc.parameter("period_start")
	ask, err := s.statementNamed(name)
	if err != nil {
		return err
	}
	subject, format := rc.query.name("subject"), rc.query.word("format", "json", "csv")
	if err := rc.query.err(); err != nil {
		return err
	}
	statement, err := ask(rc.reporting(), rc.tenant, rc.parameter("meter"), subject)
	if err != nil {
		return err
	}
	h := rc.Response().Header()
	set(h, echo.HeaderVary, echo.HeaderAccept)
	if format == "csv" || format == "" && prefersCSV(rc.Request().Header[echo.HeaderAccept]) {
		set(h, echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", answers.StatementFile(statement)))
		body, err := answers.AppendStatementCSV(rc.out[:0], statement)
		if err != nil {
			return err
		}
		return rc.sendBytes(http.StatusOK, typeCSV+"; charset=utf-8; header=present", body)
	}
	return rc.send(http.StatusOK, answers.Statement(statement))
}

// statementNamed returns the function that reads the statement of the period in the path. The argument `name` is the
// start of the period, `current`, `last`, or `at:<time>`.
func (s *Server) statementNamed(name string) (func(ctx context.Context, tenant, meter, subject string) (*history.Statement, error), error) {
	switch name {
	case "current":
		return s.history.StatementCurrent, nil
	case "last":
		return s.history.StatementLast, nil
	}
	find := s.history.Statement
	text, within := strings.CutPrefix(name, "at:")
	if within {
		find = s.history.StatementAt
	}
	at, ok := body.ParseInstant(text)
	if !ok {
		return nil, body.Refuse("period_start", "must be the start of a period, current, last, or at:<time>; a time %s", body.MustBeInstant())
	}
	return func(ctx context.Context, tenant, meter, subject string) (*history.Statement, error) {
		return find(ctx, tenant, meter, subject, at)
	}, nil
}

// listStatements answers with a page of the statements of a tenant, one for each period.
func (s *Server) listStatements(rc *request) error {
	q := history.StatementQuery{Tenant: rc.tenant, Meter: rc.query.id("meter"), Subject: rc.query.name("subject")}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	page, err := s.history.Statements(rc.reporting(), q)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.StatementList{
		NextCursor: nextCursor(page.NextCursor),
		Items: answers.Map(page.Items, func(s *history.Statement) client.StatementSummary {
			return client.StatementSummary{
				Meter: s.Meter, Subject: s.Subject, Plan: s.Plan, PlanVersion: s.PlanVersion, PeriodStart: s.Start.UTC(), PeriodEnd: answers.TimeOrNull(s.End), Closed: s.Closed,
				Opening: s.Opening, Granted: s.Granted, Amended: s.Amended, Refunded: s.Refunded, Used: s.Used, Overflow: s.Overflow,
				Expired: s.Expired, Adjusted: s.Adjusted, Closing: s.Closing, Held: s.Held, Overage: s.Overage,
			}
		}),
	})
}

// prefersCSV reports whether an Accept header prefers CSV to JSON. If it prefers neither, the answer is JSON.
func prefersCSV(accept []string) bool {
	csvRank, jsonRank, anyRank := 0.0, -1.0, 0.0
	for _, part := range strings.Split(strings.Join(accept, ","), ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := 1.0
		if q, given := parameters["q"]; given {
			if rank, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch media {
		case typeCSV, "text/*":
			csvRank = max(csvRank, rank)
		case typeJSON, "application/*":
			jsonRank = max(jsonRank, rank)
		case "*/*":
			anyRank = max(anyRank, rank)
		}
	}
	if jsonRank < 0 {
		jsonRank = anyRank
	}
	return csvRank > jsonRank
}

// usage answers with the use of one balance per hour, day or month.
func (s *Server) usage(rc *request) error {
	q := history.UsageQuery{
		Tenant: rc.tenant, Meter: rc.query.requiredID("meter"), Subject: rc.query.name("subject"), From: rc.query.requiredInstant("from"),
		To: rc.query.requiredInstant("to"), Zone: rc.query.zone("timezone"),
	}
	q.Step = history.UsageStep(rc.query.word("by", string(history.UsageByHour), string(history.UsageByDay), string(history.UsageByMonth)))
	q.Group = s.usageGroup(rc, q.Meter)
	q.Step = cmp.Or(q.Step, history.UsageByDay)
	if err := rc.query.err(); err != nil {
		return err
	}
	buckets, err := s.history.Usage(rc.reporting(), q)
	if err != nil {
		return err
	}
	items := answers.Map(buckets, func(u *history.UsageBucket) client.Usage {
		item := client.Usage{Start: u.Start.UTC(), Used: u.Used, Overage: u.Overage, Overflow: u.Overflow, Refunded: u.Refunded, Operations: u.Operations}
		if d := q.Group.Dimension(); d != "" {
			item.Group = map[string]string{d: u.Value}
		} else if q.Group != "" {
			item.Group = map[string]string{string(q.Group): u.Value}
		}
		return item
	})
	return rc.send(http.StatusOK, client.UsageList{Items: items})
}

// usageGroup returns how the use is grouped: by subject, by a dimension of the meter, or not at all.
func (s *Server) usageGroup(rc *request, meter string) history.UsageGroup {
	group := history.UsageGroup(rc.query.values.Get("group_by"))
	if !rc.query.values.Has("group_by") || group == history.UsageBySubject {
		return group
	}
	words := []string{string(history.UsageBySubject)}
	if m := s.catalog.Snapshot().Meters[meter]; m != nil {
		for _, d := range m.Dimensions {
			words = append(words, string(history.UsageByDimension(d)))
		}
	}
	return history.UsageGroup(rc.query.word("group_by", words...))
}
