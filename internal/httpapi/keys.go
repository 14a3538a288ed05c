package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// createKey creates an API key and answers with its secret.
func (s *Server) createKey(rc *request) error {
	var n access.New
	if err := decode(rc, &n, s.bodies.key); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a retry creates another API key, because a secret is shown once; an Idempotency-Key must be valid
	}
	if err := rc.ofTenant(n.Tenant); err != nil {
		return err
	}
	k, secret, err := s.keys.Store().Create(rc.ctx, n)
	if err != nil {
		return err
	}
	set(rc.Response().Header(), "Location", "/v1/keys/"+k.ID)
	return rc.send(http.StatusCreated, answers.NewKey(&k, secret))
}

// listKeys answers with a page of API keys.
func (s *Server) listKeys(rc *request) error {
	page, err := rc.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.keys.Store().List(rc.ctx, page)
	if err != nil {
		return err
	}
	for i := range list.Items {
		s.keys.UsedHere(&list.Items[i])
	}
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Key)
}

// getKey answers with the API key in the path.
func (s *Server) getKey(rc *request) error {
	k, err := s.keys.Store().Get(rc.ctx, rc.parameter("key_id"))
	if err != nil {
		return err
	}
	if err := rc.ofKey(&k); err != nil {
		return err
	}
	s.keys.UsedHere(&k)
	return rc.send(http.StatusOK, answers.Key(&k))
}

// rotateKey gives an API key a new secret.
func (s *Server) rotateKey(rc *request) error {
	overlap, err := rc.rotation()
	if err != nil {
		return err
	}
	k, secret, err := s.keys.Rotate(rc.ctx, rc.parameter("key_id"), overlap, rc.ofKey)
	if err != nil {
		return err
	}
	return rc.send(http.StatusCreated, answers.NewKey(&k, secret))
}

// rotation reads a request that replaces the secret of a key or a webhook. It returns how much longer the previous
// secrets work.
func (rc *request) rotation() (overlap time.Duration, err error) {
	var r access.Rotation
	if rc.Request().ContentLength != 0 { // without a body, the old secrets stop working at once
		if err = decode(rc, &r, rc.server.bodies.rotation); err != nil {
			return 0, err
		}
	}
	_, err = rc.idempotencyKey() // see createKey
	return r.Overlap, err
}

// revokeKey revokes an API key.
func (s *Server) revokeKey(rc *request) error {
	return rc.sendNoContent(s.keys.Revoke(rc.ctx, rc.parameter("key_id"), rc.ofKey))
}

// createPortalSession creates a link with which a customer can open the customer's page.
func (s *Server) createPortalSession(rc *request) error {
	n := link.New{Base: s.cfg.LinkBase}
	if err := decode(rc, &n, s.bodies.link); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // see createKey
	}
	if err := rc.ofTenant(n.Tenant); err != nil {
		return err
	}
	if n.Base == "" { // the base of the URL that the caller used
		n.Base = rc.Scheme() + "://" + rc.Request().Host
	}
	made, err := s.cfg.Links.Create(rc.ctx, n)
	if err != nil {
		return err
	}
	return rc.send(http.StatusCreated, client.PortalSession{URL: made.URL, ExpiresAt: made.ExpiresAt})
}

// endPortalSessions makes all links of a tenant invalid.
func (s *Server) endPortalSessions(rc *request) error {
	return rc.sendNoContent(s.cfg.Links.EndAll(rc.ctx, rc.tenant))
}

// ofKey records the tenant of an API key, and refuses a key that is bound to another tenant (see ofTenant).
func (rc *request) ofKey(k *access.Key) error { return rc.ofTenant(k.Tenant) }

// listAudit answers with a page of the audit log.
func (s *Server) listAudit(rc *request) error {
	q := auditlog.Query{
		Tenant: rc.query.name("tenant"), Actor: rc.query.id("actor"), Action: rc.query.id("action"), From: rc.query.instant("from"), To: rc.query.instant("to"),
	}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	if q.Tenant == "" {
		q.Tenant = rc.key.Tenant
	} else if err := rc.ofTenant(q.Tenant); err != nil {
		return err
	}
	page, err := s.store.Audit(rc.ctx, q)
	return sendPage(rc, page.Items, page.NextCursor, err, answers.AuditLine)
}
