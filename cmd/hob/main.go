// Command hob starts model servers in tmux panes, and ends all of what it started.
package main

func main() {}
