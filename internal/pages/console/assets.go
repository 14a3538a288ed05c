package console

import (
	"embed"

	"github.com/quotasvc/quotasvc/internal/kit/asset"
)

//go:embed assets/*.js assets/*.css
var assetFiles embed.FS

// newAssets returns the console's scripts and styles.
func newAssets() *asset.Set {
	set, err := asset.New(Prefix+"assets/", assetFiles, "assets")
	if err != nil {
		panic(err) // cannot happen: the files are embedded
	}
	return set
}
