# soak.sh FOLDER KIND: what the tasks of the soak run. Without the marker of a run
# it is a stranger with the same command line, and waits for ever.
D=$1
forever() { read -r _ <"$D/never"; }
[ -n "$HOB_RUN_ID" ] || forever
escape() { (setsid sleep 600 >/dev/null 2>&1 </dev/null &); }
case $2 in
tree) # a child, a daemon, a daemon that is deaf to TERM
	sleep 600 &
	setsid sleep 600 &
	(setsid sh -c 'trap "" TERM HUP; exec sleep 600' &)
	echo up
	forever
	;;
late) # daemons that are born all the time, some just before a kill
	echo up
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		escape
		sleep 0.2
	done
	forever
	;;
deaf) # does not end with its terminal
	trap '' HUP
	echo up
	forever
	;;
crash) # ends again and again, and leaves a daemon each time
	escape
	echo up
	sleep 0.4
	exit 3
	;;
good) sleep 0.3 ;;
bad)
	escape
	sleep 0.2
	exit 7
	;;
long)
	sleep 600 &
	wait
	;;
esac
