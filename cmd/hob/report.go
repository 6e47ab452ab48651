package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hob/sweep"
	"hob/tasks"
)

func (a *app) reportCommand() *cobra.Command {
	var list, md bool
	var page string
	cmd := &cobra.Command{
		Use:   "report [RUN | RUN/TASK | TASK]...",
		Short: "show what the last stop or sweep came to",
		Long: `Show the last report of tasks: every process that was captured, what it was sent
and what became of it, what merely looks alike, and the ports. Without an
argument: of the run that was stopped or swept last, archive included.`,
		Example: `  hob report chat/llm
  hob report --html report.html`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(_ *cobra.Command, args []string) error {
			if count(list, md, page != "") > 1 || a.json && (md || page != "") {
				return usage("leave all but one out", "--list, --md, --html and --json are different forms")
			}
			m, err := a.viewer("report")
			if err != nil {
				return err
			}
			past, err := pastReports(m, args, list)
			switch {
			case list:
				return join(a.table(reportColumns, reportRows(past, a.outTTY, time.Now())), err)
			case a.json:
				return join(a.writeJSON(onlyReports(past)), err)
			case len(past) == 0 && err == nil:
				return noReport(args)
			case page != "":
				return join(writePage(page, onlyReports(past)), err)
			}
			for _, p := range past {
				if md {
					err = join(err, p.Report.Markdown(a.out))
				} else {
					err = join(err, a.reportText(p.Report))
				}
			}
			return err
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&list, "list", false, "list all reports, the newest first")
	cmd.Flags().BoolVar(&md, "md", false, "write Markdown, for pasting into an issue")
	cmd.Flags().StringVar(&page, "html", "", "write a page with the tree and a timeline to `FILE`")
	return cmd
}

func count(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// writePage writes a page that only its owner can read: command lines may tell
// more than one wants to show.
func writePage(path string, reports []sweep.Report) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return join(sweep.HTML(f, reports), f.Close())
}

func pastReports(m *tasks.Manager, args []string, all bool) ([]tasks.PastReport, error) {
	switch {
	case len(args) > 0:
		sel, err := m.Select(args)
		if err != nil {
			return nil, err
		}
		return m.ReportsOf(sel)
	case all:
		return m.Reports()
	}
	return m.LastReports()
}

func noReport(args []string) error {
	if len(args) == 0 {
		return &tasks.Problem{Msg: "there is no report yet", Tip: "hob down and hob sweep make one"}
	}
	return &tasks.Problem{Msg: "there is no report of " + args[0] + " yet", Tip: "hob down and hob sweep make one"}
}

func onlyReports(past []tasks.PastReport) []sweep.Report {
	list := []sweep.Report{}
	for _, p := range past {
		list = append(list, p.Report)
	}
	return list
}

var reportColumns = []string{"RUN", "TASK", "ENDED", "REASON", "VERDICT", "PROCESSES", "LOOKALIKES", "ARCHIVE"}

func reportRows(past []tasks.PastReport, people bool, now time.Time) [][]string {
	var rows [][]string
	for _, p := range past {
		r := p.Report
		rows = append(rows, []string{
			p.Run, p.Task, moment(&r.EndedAt, people, now), r.Reason, string(r.Verdict),
			strconv.Itoa(len(r.Members)), strconv.Itoa(len(r.Lookalikes)), p.Archive,
		})
	}
	return rows
}

// reports prints the reports of stops and sweeps, and of the rest what was done.
func (a *app) reports(outs []tasks.Outcome) error {
	if a.json {
		list := []sweep.Report{}
		for _, o := range outs {
			if o.Report != nil {
				list = append(list, *o.Report)
			}
		}
		return a.writeJSON(list)
	}
	for _, o := range outs {
		if err := a.reportOne(o); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) reportOne(o tasks.Outcome) error {
	switch {
	case a.quiet:
		return nil
	case o.Report == nil || o.Did == "had ended":
		if o.Did != "" {
			a.say("%s %s", o.Name, o.Did)
		}
		return nil
	}
	return a.reportText(*o.Report)
}

func (a *app) reportText(r sweep.Report) error {
	o := sweep.TextOptions{Color: a.colours()}
	if a.outTTY {
		o.Width = columns()
	}
	return r.Text(a.out, o)
}
