package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The message of a fault says how to correct the file.
func TestFile_Messages_SayWhatToWrite(t *testing.T) {
	t.Parallel()
	allowance := func(amount string) string {
		return "plans:\n  p:\n    allowances:\n      - {meter: m, every: day, anchor: calendar, amount: " + amount + "}\n"
	}
	const notAnAmount = "line 4: plans.p.allowances[0].amount must be an integer from 0 to 9007199254740991"
	for text, want := range map[string]string{
		"meters:\n  m: {unti: u}\n":              "line 2: meters.m.unti is an unknown field; did you mean unit?",
		"meters:\n  m: {unit: u, colour: red}\n": "line 2: meters.m.colour is an unknown field\n",
		"metres: {}\n":                           "line 1: metres is an unknown section; the sections are meters, plans, limits, tenants, blocks; did you mean meters?",
		"meters:\n\tm: {unit: u}\n":              "line 2: is indented with a TAB",
		"meters:\n  m:\n\t  unit: u\n":           "line 3: is indented with a TAB",
		allowance("1e6"):                         notAnAmount + "; write 1000000",
		allowance("1e3.5"):                       notAnAmount + "\n",
		allowance("2.5"):                         notAnAmount + "; there are no fractions: count in a smaller unit",
		allowance("0.5"):                         notAnAmount + "; there are no fractions: count in a smaller unit",
		allowance("unlimited"):                   notAnAmount + "; nothing is unlimited",
		allowance("'1,000'"):                     notAnAmount + "; write 1000",
		allowance("many"):                        notAnAmount + "\n",
		allowance("-1"):                          notAnAmount + "\n",
		allowance("99999999999999999999"):        notAnAmount + "\n",

		strings.Replace(allowance("1"), "every: day, ", "", 1):                     "line 4: plans.p.allowances[0].every is required",
		"tenants:\n  t: null\n":                                                    "line 2: tenants.t.plan is required",
		"limits:\n  r: {per: [tenant], kind: token_bucket, rate: 1/s, brust: 5}\n": "line 2: limits.r.brust is an unknown field; did you mean burst?",
	} {
		_, err := ParseFile([]byte(text))
		assert.True(t, err != nil && strings.Contains(err.Error()+"\n", want), "%s\n%v\nwant %s", text, err, want)
	}
}
