package client

import (
	"encoding/json"
	"testing"
)

func TestPriceRatio_BothForms_ComeBack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]PriceRatio{`3`: {Units: 3, Per: 1}, `{"units":1,"per":1000}`: {Units: 1, Per: 1000}} {
		var p PriceRatio
		if err := json.Unmarshal([]byte(text), &p); err != nil || p != want {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
		if back, err := json.Marshal(p); err != nil || string(back) != text {
			t.Errorf("%+v: %s, %v", p, back, err)
		}
	}
	if back, err := json.Marshal(Overflow{Meter: "credits", Price: PriceRatio{Units: 2}}); err != nil || string(back) != `{"meter":"credits","price":2}` {
		t.Errorf("without per: %s, %v", back, err)
	}
	var p PriceRatio
	if err := json.Unmarshal([]byte(`"1"`), &p); err == nil {
		t.Error("a text is no price")
	}
}
