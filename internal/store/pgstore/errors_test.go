package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

func TestTranslate_DriverErrors(t *testing.T) {
	t.Parallel()
	for _, away := range []error{
		context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, &pgconn.ConnectError{},
		&pgconn.PgError{Code: "57P01"}, &pgconn.PgError{Code: "53300"}, &pgconn.PgError{Code: "08006"},
		&pgconn.PgError{Code: "25006"}, &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "55P03"},
		&pgconn.PgError{Code: "57014"}, pgconn.ErrConnClosed,
	} {
		err := Translate("test", fmt.Errorf("wrapped: %w", away))
		require.Equal(t, errcode.Unavailable, errcode.Of(err), "%v", away)
		require.ErrorIs(t, err, away, "the cause stays")
	}
	for _, bug := range []error{
		errors.New("scan"), &pgconn.PgError{Code: "22P02"}, &pgconn.PgError{Code: "X"}, &pgconn.PgError{},
	} {
		var e *errcode.Error
		require.ErrorAs(t, Translate("test", bug), &e)
		require.Equal(t, errcode.Internal, e.Code)
		require.Empty(t, e.Detail)
	}
	conflict := errcode.Errorf(errcode.Conflict, "", "no")
	require.Same(t, conflict, Translate("test", fmt.Errorf("wrapped: %w", conflict)))
	require.NoError(t, Translate("test", nil))
}
