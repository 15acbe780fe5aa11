module github.com/nodbus/nod

go 1.26.8
