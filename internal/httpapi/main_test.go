package httpapi

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder(typeProblem, openapi3filter.JSONBodyDecoder)
	testenv.Main(m)
}
