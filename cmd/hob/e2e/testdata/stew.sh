# stew.sh FOLDER [ROLE]: a server with a child, a daemon, and a daemon that is
# deaf to TERM. Each writes its pid to a file of its name in FOLDER, and to the
# list of all that ever were. Without the marker of a run it is a stranger with
# the same command line.
D=$1
note() {
	echo $$ >>"$D/all"
	echo $$ >"$D/$1.part.$$"
	mv "$D/$1.part.$$" "$D/$1"
}
[ -n "$HOB_RUN_ID" ] || read -r _ <"$D/never"
case $2 in
'') ;;
deaf) trap '' TERM HUP; note "$2"; exec sleep 600 ;;
*) note "$2"; exec sleep 600 ;;
esac
rm -f "$D/child" "$D/daemon" "$D/deaf"
note main
sh "$0" "$D" child &
setsid sh "$0" "$D" daemon &
(setsid sh "$0" "$D" deaf &)
until [ -e "$D/child" ] && [ -e "$D/daemon" ] && [ -e "$D/deaf" ]; do sleep 0.01; done
echo "the stew is on"
read -r _ <"$D/never"
