package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	timeout      = 5 * time.Second       // for a reply: more than blockMs
	firstPause   = 50 * time.Millisecond // between two tries
	longestPause = 2 * time.Second
)

// mistakes are errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED,
// CLUSTERDOWN and so on.
var mistakes = map[string]bool{
	"ERR": true, "WRONGTYPE": true, "NOAUTH": true, "NOPERM": true, "WRONGPASS": true,
}

// link has a client that is made anew after each error: its address may lead to another server by
// then. It is for one goroutine.
type link struct{ client *redis.Client }

// send gives the reply, nil for the server's nil.
func (l *link) send(words ...any) (any, error) {
	if l.client == nil {
		l.client = redis.NewClient(options())
	}
	reply, err := l.client.Do(context.Background(), words...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		l.client.Close()
		l.client = nil
	}
	return reply, err
}

func options() *redis.Options {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	parsed, err := redis.ParseURL(url)
	if err != nil {
		log.Fatal(err)
	}
	parsed.DialTimeout, parsed.ReadTimeout, parsed.WriteTimeout = timeout, timeout, timeout
	parsed.MaxRetries = -1 // `ask` tries again, and says so
	return parsed
}

// ask sends a command until it is answered: the reply, nil when it gave up, and how many tries it
// took.
func (l *link) ask(givesUp func() bool, words ...any) (reply any, tries int) {
	pause := firstPause
	for tries = 1; ; tries++ {
		reply, err := l.send(words...)
		if err == nil {
			return reply, tries
		}
		if mistakes[strings.SplitN(err.Error(), " ", 2)[0]] {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", words[0], err)
		if givesUp() {
			return nil, tries
		}
		time.Sleep(pause/2 + time.Duration(rand.Int63n(int64(pause/2)))) // not all workers at once
		if pause *= 2; pause > longestPause {
			pause = longestPause
		}
	}
}
