package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Report is the result of Run.
type Report struct {
	Version  string    `json:"version"` // nod's version
	Go       string    `json:"go"`
	System   string    `json:"system"`
	CPUs     int       `json:"cpus"`
	Load     [2]string `json:"load"` // the load average over a minute, before and after the run; empty if unknown
	Disk     Disk      `json:"disk"`
	Quick    bool      `json:"quick"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Measured []Row     `json:"measured"`
}

// Row compares nod with the callbacks on bare NATS in one measurement. Ratio is nod's value divided
// by the value of bare NATS. If bare NATS has no such work, both Ratio and Bare are 0. Unit is "µs",
// "s", "/s" or "B" (bytes of live objects). The processor times are in µs per request, for the agent,
// the engine, the approver and the server together. They are 0 if they were not measured.
type Row struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Ratio   float64 `json:"ratio"`
	Nod     float64 `json:"nod"`
	Bare    float64 `json:"bare"`
	NodCPU  float64 `json:"nod_cpu_us,omitempty"`
	BareCPU float64 `json:"bare_cpu_us,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// eachRow compares the times that one request takes, and rateRow compares the numbers of requests per
// second.
func eachRow(name string, nod, bare Cost) Row {
	return Row{name, "µs", float64(nod.Each) / float64(bare.Each), micros(nod.Each), micros(bare.Each), micros(nod.CPU), micros(bare.CPU)}
}

func rateRow(name string, nod, bare Cost) Row {
	return Row{name, "/s", nod.Rate / bare.Rate, nod.Rate, bare.Rate, micros(nod.CPU), micros(bare.CPU)}
}

func timeRow(name string, nod, bare time.Duration) Row {
	return Row{Name: name, Unit: "s", Ratio: nod.Seconds() / bare.Seconds(), Nod: nod.Seconds(), Bare: bare.Seconds()}
}

// bytesRow compares the memory of nod and of bare NATS.
func bytesRow(name string, nod, bare float64) Row {
	return Row{Name: name, Unit: "B", Ratio: nod / bare, Nod: nod, Bare: bare}
}

// nodRow is a measurement without a counterpart on bare NATS.
func nodRow(name, unit string, nod float64) Row { return Row{Name: name, Unit: unit, Nod: nod} }

func newReport(version string, quick bool) Report {
	return Report{
		Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Load: [2]string{load(), ""}, Quick: quick, Started: time.Now().UTC().Truncate(time.Second),
	}
}

func (r *Report) end() {
	r.Load[1] = load()
	r.Seconds = time.Since(r.Started).Round(time.Second).Seconds()
}

// load returns the load average over a minute, or "" on a system without it.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// Table returns the report as a table in Markdown, after a line about the machine.
func (r *Report) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nod %s, %s, %s, %d CPUs", r.Version, r.Go, r.System, r.CPUs)
	if r.Load[0] != "" {
		fmt.Fprintf(&b, ", load %s to %s", r.Load[0], r.Load[1])
	}
	fmt.Fprintf(&b, "; a sync to disk takes %.0f µs (99 of 100: at most %.0f µs)", micros(r.Disk.Median), micros(r.Disk.Worst))
	if r.Quick {
		b.WriteString("; quick run")
	}
	b.WriteString("\n\n| | nod / bare NATS | nod | bare NATS | CPU of nod / bare NATS |\n|---|---|---|---|---|\n")
	for _, m := range r.Measured {
		cpu := ""
		if m.NodCPU > 0 && m.BareCPU > 0 {
			cpu = fmt.Sprintf("%.1f × (%.0f / %.0f µs)", m.NodCPU/m.BareCPU, m.NodCPU, m.BareCPU)
		}
		ratio, bare := "", ""
		if m.Bare > 0 {
			ratio, bare = fmt.Sprintf("%.2f ×", m.Ratio), m.quantity(m.Bare)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.Name, ratio, m.quantity(m.Nod), bare, cpu)
	}
	return b.String()
}

func (m *Row) quantity(n float64) string {
	switch m.Unit {
	case "s":
		return fmt.Sprintf("%.2f s", n)
	case "/s":
		return fmt.Sprintf("%.0f per s", n)
	case "B":
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	if n >= 10_000 { // the value is in µs
		return fmt.Sprintf("%.0f ms", n/1e3)
	}
	return fmt.Sprintf("%.0f %s", n, m.Unit)
}
