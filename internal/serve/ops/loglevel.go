package ops

import (
	"encoding/json/v2"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

// levelBodyMax bounds the body of PUT /log-level in bytes.
const levelBodyMax = 1024

// logLevel is the body of requests and answers of /log-level.
type logLevel struct {
	Level string `json:"level"` // debug, info, warn or error
}

func (e *Endpoints) getLevel(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, logLevel{strings.ToLower(e.cfg.Level.Level().String())})
}

// putLevel changes the log level. The level is not stored: it applies until the process ends.
func (e *Endpoints) putLevel(w http.ResponseWriter, r *http.Request) {
	var given logLevel
	text, err := io.ReadAll(io.LimitReader(r.Body, levelBodyMax))
	if err == nil {
		err = json.Unmarshal(text, &given, json.RejectUnknownMembers(true))
	}
	level, known := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[given.Level]
	if err != nil || !known {
		http.Error(w, `send {"level":"debug"}, or info, warn or error`, http.StatusBadRequest)
		return
	}
	before := e.cfg.Level.Level()
	e.cfg.Level.Set(level)
	if before != level { // at a level that the new setting does not suppress
		e.cfg.Log.Log(r.Context(), max(level, slog.LevelInfo), "log level changed", "from", before, "to", level)
	}
	e.getLevel(w, r)
}
