package gate

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.MainWithRedis(m) }
