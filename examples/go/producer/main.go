// Queues some mail. Safe to run again: what is queued already stays as it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const queue = "mail"

var ctx = context.Background()

func main() {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		log.Fatal(err)
	}
	server := redis.NewClient(options)
	defer server.Close()

	// In half a second. A worker that says nothing for ten seconds is taken for dead.
	delay, ttr := 500*time.Millisecond, 10*time.Second
	add(server, "welcome:ann", "ann@example.com", "DELAY", ms(delay), "TTR", ms(ttr))
	add(server, "welcome:ann", "ann@example.com", "DELAY", ms(delay), "TTR", ms(ttr))
	// Now.
	add(server, "newsletter:7", "ann@example.com bob@example.com eve@example.com", "TTR", ms(ttr))
	// This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
	add(server, "welcome:dan", "dan@down.example", "ATTEMPTS", 3, "BACKOFF", 200, 60_000)
	// Not a mail address: its worker buries it.
	add(server, "welcome:nobody", "nobody")
	// Bob pays at once, so he needs no reminder.
	add(server, "reminder:bob", "bob@example.com", "DELAY", ms(24*time.Hour))
	cancelled, err := server.Do(ctx, "DQ.DEL", queue, "reminder:bob").Int()
	if err != nil {
		log.Fatal(err)
	}
	if cancelled == 1 {
		fmt.Println("cancelled: reminder:bob")
	}
}

// NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice.
func add(server *redis.Client, id, body string, options ...any) {
	words := append([]any{"DQ.ADD", queue, id, body, "NX"}, options...)
	err := server.Do(ctx, words...).Err()
	switch {
	case err == nil:
		fmt.Println("added:", id)
	case errors.Is(err, redis.Nil):
		fmt.Println("queued already:", id)
	default:
		log.Fatal(err)
	}
}

func ms(duration time.Duration) int64 { return duration.Milliseconds() }
