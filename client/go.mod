module github.com/quotasvc/quotasvc/client

go 1.25.0
