module example.com/mail

go 1.18

require github.com/redis/go-redis/v9 v9.7.3
