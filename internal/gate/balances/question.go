package balances

import (
	"strconv"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// QuestionKey returns a text that identifies a question: a tenant, a subject and items. Each string in it follows its
// length, and each amount ends with a comma. So different questions always have different texts.
func QuestionKey(tenant, subject string, items []ledger.Item) string {
	key := make([]byte, 0, 128)
	text := func(s string) {
		key = strconv.AppendInt(key, int64(len(s)), 10)
		key = append(key, ':')
		key = append(key, s...)
	}
	text(tenant)
	text(subject)
	for i := range items {
		text(items[i].Meter)
		key = append(strconv.AppendInt(key, items[i].Amount, 10), ',')
	}
	return string(key)
}
