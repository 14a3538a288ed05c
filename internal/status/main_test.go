package status

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
