package testenv

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CutLink is a network connection between clients and PostgreSQL that breaks at one statement of the clients. Then
// all connections end, and further ones are refused until the next Cut. So a test can kill a command at each of its
// statements.
type CutLink struct {
	URL string // of the same database, through the link

	t      testing.TB
	direct string // URL without the link

	mu    sync.Mutex
	cut   Cut
	seen  int // number of statements since the call of Cut that count
	at    string
	open  map[net.Conn]bool
	whole bool
}

// Cut says at which statement a CutLink breaks.
type Cut struct {
	Nth int // 1 is the first statement that counts; 0: the link does not break

	// Counts reports whether a statement counts. inTx says whether it is part of a transaction that an earlier
	// statement has begun. nil: all statements count.
	Counts func(statement string, inTx bool) bool

	// Amid ends the statement in the server while it runs, if it waits for another transaction that has read all
	// tables. If Amid is false, if the statement does not wait, or if it is part of a transaction, the server executes
	// it, and its answer is lost.
	Amid bool

	Kill func() // is called before the connections end
}

// NewCutLink starts a link to a database. The link ends with the test.
func NewCutLink(t testing.TB, databaseURL string) *CutLink {
	t.Helper()
	u := Must(t).Get(url.Parse(databaseURL))
	l := &CutLink{t: t, direct: databaseURL, open: make(map[net.Conn]bool), whole: true}
	server := u.Host
	u.Host = acceptAll(t, func(client net.Conn) { l.serve(client, server) })
	query := u.Query()
	query.Set("sslmode", "disable") // the link reads the messages
	u.RawQuery = query.Encode()
	l.URL = u.String()
	t.Cleanup(l.closeAll)
	return l
}

// Cut makes the link whole, and says where it breaks next.
func (l *CutLink) Cut(c Cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.seen, l.at, l.whole = c, 0, "", true
}

// BrokeAt returns the statement at which the link broke since the latest call of Cut. It is empty if it did not break.
func (l *CutLink) BrokeAt() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *CutLink) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}

// keep adds connections to those that end when the link breaks. It returns false if the link is broken.
func (l *CutLink) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.open[c] = true
	}
	return l.whole
}

func (l *CutLink) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	_ = c.Close()
}

// breaks reports whether the link breaks at this statement.
func (l *CutLink) breaks(statement string, inTx bool) (Cut, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != "" || l.cut.Nth == 0 || l.cut.Counts != nil && !l.cut.Counts(statement, inTx) {
		return l.cut, false
	}
	l.seen++
	if l.seen != l.cut.Nth {
		return l.cut, false
	}
	l.at = statement
	return l.cut, true
}

func (l *CutLink) snap(c Cut) {
	l.mu.Lock()
	l.whole = false
	l.mu.Unlock()
	if c.Kill != nil {
		c.Kill()
	}
	l.closeAll()
}

// cutSession is one connection of a client through a CutLink.
type cutSession struct {
	mu       sync.Mutex
	pid      uint32
	inTx     bool
	answered int // number of answers of the server, without that to the start of the session
	sent     int // number of messages that the server answers
	last     int // the link breaks at the answer to this message; 0: it does not break yet
	cut      Cut
	done     chan struct{} // closed when the server has answered the message `last`, or has ended the session
}

func (l *CutLink) serve(client net.Conn, address string) {
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	defer l.forget(client)
	defer l.forget(server)
	if !l.keep(client, server) {
		return
	}
	s := &cutSession{answered: -1, done: make(chan struct{})}
	var both sync.WaitGroup
	both.Go(func() { l.requests(s, client, server) })
	both.Go(func() { l.answers(s, client, server) })
	both.Wait()
}

// requests passes the client's messages on.
func (l *CutLink) requests(s *cutSession, client, server net.Conn) {
	defer server.Close()
	prepared := make(map[string]string) // texts of statements by their names
	var statement string                // the statement that is executed next
	var executes bool
	for first := true; ; first = false {
		kind, message, err := readMessage(client, first)
		if err != nil {
			return
		}
		switch kind {
		case 'P':
			words := strings.SplitN(string(message[5:]), "\x00", 3)
			prepared[words[0]] = words[1]
		case 'B':
			statement, executes = prepared[strings.SplitN(string(message[5:]), "\x00", 3)[1]], true
		case 'Q':
			l.send(s, strings.TrimRight(string(message[5:]), "\x00"), true)
		case 'S':
			l.send(s, statement, executes)
			executes = false
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// send notes that the client sends a message that the server answers.
func (l *CutLink) send(s *cutSession, statement string, executes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if !executes {
		return
	}
	cut, breaks := l.breaks(statement, s.inTx)
	if !breaks {
		return
	}
	s.cut, s.last = cut, s.sent
	if cut.Amid && !s.inTx { // within a transaction, that one may have locked the tables
		holder := l.hold()
		go l.endAmid(s, holder, s.pid)
	}
}

// hold begins a transaction that has read all tables.
func (l *CutLink) hold() *pgx.Conn {
	const lock = `DO $$ BEGIN
		EXECUTE (SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ') || ' IN ACCESS SHARE MODE' FROM pg_class
			WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace HAVING count(*) > 0);
		EXCEPTION WHEN null_value_not_allowed THEN NULL; END $$`
	conn, err := pgx.Connect(context.Background(), l.direct)
	if err == nil {
		_, err = conn.Exec(context.Background(), "BEGIN ISOLATION LEVEL REPEATABLE READ; "+lock)
	}
	if err != nil {
		l.t.Errorf("testenv: a transaction that has read all tables: %v", err)
	}
	return conn
}

// endAmid ends the server's session when it waits for a lock.
func (l *CutLink) endAmid(s *cutSession, holder *pgx.Conn, pid uint32) {
	ctx := context.Background()
	defer holder.Close(ctx)
	for ended := false; !ended; {
		select {
		case <-s.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
		const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
		err := holder.QueryRow(ctx, end, pid).Scan(&ended)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			l.t.Errorf("testenv: end the session: %v", err)
			return
		}
	}
}

// answers passes the server's messages on.
func (l *CutLink) answers(s *cutSession, client, server net.Conn) {
	defer client.Close()
	defer func() {
		if cut, ended := s.end(); ended {
			l.snap(cut)
		}
	}()
	for {
		kind, message, err := readMessage(server, false)
		if err != nil {
			return
		}
		lost, last := s.answer(kind, message)
		if last {
			return
		}
		if lost {
			continue
		}
		if _, err := client.Write(message); err != nil {
			return
		}
	}
}

// answer notes a message of the server. It reports whether the message belongs to the answer that is lost, and whether
// it is the last one of that answer.
func (s *cutSession) answer(kind byte, message []byte) (lost, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost = s.last > 0 && s.answered == s.last-1
	switch kind {
	case 'K':
		s.pid = binary.BigEndian.Uint32(message[5:])
	case 'Z':
		s.answered++
		s.inTx = message[5] != 'I'
		last = lost
	}
	return lost, last
}

// end reports whether the link breaks with the end of this session.
func (s *cutSession) end() (Cut, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 {
		return Cut{}, false
	}
	close(s.done)
	return s.cut, true
}

// readMessage reads one message of PostgreSQL's protocol, version 3. The first message of a client has no kind.
func readMessage(from io.Reader, first bool) (kind byte, message []byte, err error) {
	header := make([]byte, 5)
	if first {
		header = header[:4]
	}
	if _, err := io.ReadFull(from, header); err != nil {
		return 0, nil, err
	}
	if !first {
		kind = header[0]
	}
	length := int(binary.BigEndian.Uint32(header[len(header)-4:])) - 4
	message = make([]byte, len(header)+length)
	copy(message, header)
	_, err = io.ReadFull(from, message[len(header):])
	return kind, message, err
}
