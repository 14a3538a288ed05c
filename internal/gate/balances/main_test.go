package balances

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.MainWithRedis(m) }
