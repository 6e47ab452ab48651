package tasks

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"hob/sweep"
)

// PastReport is a report on disk.
type PastReport struct {
	Name
	Archive string // name of the folder in archive/; "" for a run that has its name still
	Report  sweep.Report
}

// ReportsOf reads the last report of each selected task; those without one are
// left out.
func (m *Manager) ReportsOf(sel []Selection) ([]PastReport, error) {
	var list []PastReport
	var errs []error
	for _, s := range sel {
		l, err := reportsIn(s.Run, s.Tasks, "")
		list = append(list, l...)
		errs = append(errs, s.Err, err)
	}
	return list, errors.Join(errs...)
}

func reportsIn(r *RunDir, tasks []string, archive string) ([]PastReport, error) {
	var list []PastReport
	var errs []error
	for _, task := range tasks {
		rep, err := r.Task(task).ReadReport()
		if err == nil {
			list = append(list, PastReport{Name: Name{r.Name, task}, Archive: archive, Report: rep})
		}
		errs = append(errs, trouble(err))
	}
	return list, errors.Join(errs...)
}

// Reports reads every report there is, archive included, the newest first.
func (m *Manager) Reports() ([]PastReport, error) {
	sel, err := m.All()
	if err != nil {
		return nil, err
	}
	list, err := m.ReportsOf(sel)
	errs := []error{err}
	archived, err := m.Store.Archived()
	errs = append(errs, err)
	for _, r := range archived {
		l, err := archivedReports(r)
		list = append(list, l...)
		errs = append(errs, err)
	}
	newestFirst(list)
	return list, errors.Join(errs...)
}

func archivedReports(r *RunDir) ([]PastReport, error) {
	tasks, err := r.Tasks()
	if err != nil {
		return nil, err
	}
	return reportsIn(r, tasks, filepath.Base(r.Path))
}

func newestFirst(list []PastReport) {
	slices.SortStableFunc(list, func(a, b PastReport) int { return b.Report.EndedAt.Compare(a.Report.EndedAt) })
}

// LastReports are the reports of the run that was stopped or swept last, archive
// included. Of the archive no more is read than can be newer: a report is never
// younger than the moment its run was archived.
func (m *Manager) LastReports() ([]PastReport, error) {
	sel, err := m.All()
	if err != nil {
		return nil, err
	}
	list, err := m.ReportsOf(sel)
	errs := []error{err}
	newestFirst(list)
	archived, err := m.Store.Archived()
	errs = append(errs, err)
	for _, r := range slices.Backward(archived) {
		if len(list) > 0 && archivedBefore(r, list[0].Report.EndedAt) {
			break
		}
		l, err := archivedReports(r)
		errs = append(errs, err)
		list = append(list, l...)
		newestFirst(list)
	}
	return sameRun(list), errors.Join(errs...)
}

func archivedBefore(r *RunDir, t time.Time) bool {
	at, ok := archivedAt(r)
	return ok && at.Before(t.Truncate(time.Second))
}

// sameRun keeps the reports of the first one's run.
func sameRun(list []PastReport) []PastReport {
	if len(list) == 0 {
		return nil
	}
	first := list[0]
	list = slices.DeleteFunc(slices.Clone(list), func(p PastReport) bool {
		return p.Run != first.Run || p.Archive != first.Archive
	})
	slices.SortStableFunc(list, func(a, b PastReport) int { return a.Report.StartedAt.Compare(b.Report.StartedAt) })
	return list
}
