package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// healthCmd is the command that checks whether the service on this host is ready.
type healthCmd struct {
	URL       string        `placeholder:"URL" help:"URL to request. Default: /readyz at the ops address."`
	OpsListen string        `env:"QUOTASVC_OPS_LISTEN" default:"${ops_listen}" hidden:""`
	Timeout   time.Duration `default:"2s" help:"Time limit of the request."`
}

// Run requests the URL. It returns an error unless the answer is 200.
func (c *healthCmd) Run(ctx context.Context, _ *slog.Logger) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	// The service is on this host, so no proxy of the environment stands between.
	client := &http.Client{Transport: &http.Transport{Proxy: nil}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		const bodyMax = 4096 // enough for the reasons why the service is not ready
		body, _ := io.ReadAll(io.LimitReader(response.Body, bodyMax))
		return fmt.Errorf("not ready: %s: %s", response.Status, body)
	}
	return nil
}

// target returns the URL that Run requests. If the service listens on all addresses, the URL has the loopback
// address.
func (c *healthCmd) target() (string, error) {
	if c.URL != "" {
		return c.URL, nil
	}
	host, port, err := net.SplitHostPort(c.OpsListen)
	if err != nil {
		return "", fmt.Errorf("health: ops address %q: %w", c.OpsListen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/readyz", nil
}
