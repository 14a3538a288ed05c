package client

// version is the release of this module. `make release-version` writes it.
const version = "1.0.0"
