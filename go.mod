module hob

go 1.26.0
