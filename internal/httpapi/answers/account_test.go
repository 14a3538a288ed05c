package answers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

func TestCell_NoFormulas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "debit": "debit", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "a=b": "a=b",
	} {
		assert.Equal(t, want, cell(text), "%q", text)
	}
	body, err := AppendStatementCSV(nil, &history.Statement{Lines: []history.StatementLine{{Kind: `=HYPERLINK("x")`, Source: "a,b\r\n=c", Amount: 1, Entries: 1}}})
	assert.True(t, err == nil && strings.Contains(string(body), "\r\n\"'=HYPERLINK(\"\"x\"\")\",\"a,b\r\n=c\",1,1\r\n"),
		"%v: %q", err, body)
}
