package convert

// Engines are those that commands are recognised for.
func Engines() []string {
	var all []string
	for _, s := range starters {
		if len(all) == 0 || all[len(all)-1] != s.engine {
			all = append(all, s.engine)
		}
	}
	return all
}

// Detect is detect, for tests.
var Detect = detect
