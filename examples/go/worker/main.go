// Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
// stop.
//
// It survives outages of its server: it waits and tries again. Its leases stay valid.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	queue     = "mail"
	batch     = 10
	blockMs   = 1_000                  // how late a signal may be noticed
	heartbeat = 500 * time.Millisecond // well below the TTR of any job in the queue
	// How long a worker that stops tries to say what came of its jobs.
	grace       = 5 * time.Second
	reasonBytes = 512
)

// hopeless: another attempt would fail as well.
type hopeless struct{ reason string }

func (h hopeless) Error() string { return h.reason }

// errLost: the job was cancelled, or another worker has it.
var errLost = errors.New("lost")

type job struct {
	id, body       string
	lease, attempt int64
	lost, settled  atomic.Bool
}

func newJob(delivery any) *job {
	parts := delivery.([]any)
	return &job{
		id: parts[0].(string), body: parts[1].(string),
		lease: parts[2].(int64), attempt: parts[3].(int64),
	}
}

func (j *job) check() error {
	if j.lost.Load() {
		return errLost
	}
	return nil
}

// mail is the work; here it is pretended. It may be done twice, so it has to be idempotent.
func mail(j *job) error {
	for _, address := range strings.Fields(j.body) {
		if !strings.Contains(address, "@") {
			return hopeless{"not an address: " + address}
		}
		if strings.HasSuffix(address, "@down.example") {
			return errors.New("down.example does not answer")
		}
		time.Sleep(200 * time.Millisecond)
		fmt.Printf("sent %s to %s\n", j.id, address)
		if err := j.check(); err != nil {
			return err
		}
	}
	return nil
}

type worker struct {
	server, pulse link
	// When it was told to stop, in nanoseconds; 0 before.
	stoppingSince atomic.Int64
}

func main() {
	w := &worker{}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range signals {
			w.stoppingSince.CompareAndSwap(0, time.Now().UnixNano())
		}
	}()
	for !w.isStopping() {
		jobs := w.pop()
		stop := w.keepLeases(jobs)
		for _, j := range jobs {
			if w.isStopping() {
				w.settle(j, "given back", "DQ.RELEASE", "UNBEGUN")
			} else {
				w.work(j)
			}
		}
		stop()
	}
	fmt.Println("stopped")
}

func (w *worker) isStopping() bool { return w.stoppingSince.Load() != 0 }

func (w *worker) isOutOfTime() bool {
	since := w.stoppingSince.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > grace
}

// pop isn't broken off by a signal: its reply may be on the way, with jobs.
func (w *worker) pop() []*job {
	words := []any{"DQ.POP", queue, "COUNT", batch, "BLOCK", blockMs}
	reply, _ := w.server.ask(w.isStopping, words...)
	deliveries, _ := reply.([]any)
	jobs := make([]*job, len(deliveries))
	for i, delivery := range deliveries {
		jobs[i] = newJob(delivery)
	}
	return jobs
}

func (w *worker) work(j *job) {
	err := j.check()
	if err == nil {
		err = mail(j)
	}
	var never hopeless
	switch {
	case err == nil:
		w.settle(j, "finished", "DQ.FINISH")
	case errors.Is(err, errLost):
		report(j, "lost")
	case errors.As(err, &never):
		w.settle(j, "buried, "+err.Error(), "DQ.BURY", "REASON", reason(err))
	default: // it comes back after its backoff
		w.settle(j, "failed, "+err.Error(), "DQ.RELEASE", "REASON", reason(err))
	}
}

func reason(err error) string {
	text := err.Error()
	if len(text) > reasonBytes {
		return text[:reasonBytes]
	}
	return text
}

// settle reports what came of a job, with its lease. 0 means that it isn't ours any more.
func (w *worker) settle(j *job, outcome, command string, options ...any) {
	j.settled.Store(true)
	words := append([]any{command, queue, j.id, j.lease}, options...)
	accepted, tries := w.server.ask(w.isOutOfTime, words...)
	switch {
	case accepted == nil: // when its lease runs out, it comes back
		report(j, outcome+", but the server can't be told")
	case accepted == int64(1):
		report(j, outcome)
	case tries > 1: // a try whose reply was lost may have been accepted
		report(j, outcome+" before, or lost")
	default:
		report(j, "lost")
	}
}

func report(j *job, outcome string) {
	fmt.Printf("%s: %s, attempt %d\n", j.id, outcome, j.attempt)
}

// keepLeases renews the leases of a batch, also of the jobs not yet begun, until it is stopped.
func (w *worker) keepLeases(jobs []*job) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-time.After(heartbeat):
				w.beat(jobs)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

func (w *worker) beat(jobs []*job) {
	for _, j := range jobs {
		if j.settled.Load() || j.lost.Load() {
			continue
		}
		held, err := w.pulse.send("DQ.TOUCH", queue, j.id, j.lease)
		if err != nil { // the next beat may get through, on a new connection
			fmt.Printf("heartbeat: %s\n", err)
			return
		}
		j.lost.Store(held == int64(0))
	}
}
