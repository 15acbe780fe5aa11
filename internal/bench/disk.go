package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Disk has the times that it takes to write 700 bytes to the end of a file and to sync them.
type Disk struct {
	Median time.Duration `json:"median_ns"`
	Worst  time.Duration `json:"p99_ns"` // 99 of 100 writes are at least as fast
}

// syncs is the number of writes that are measured for a Disk.
const syncs = 300

func measureDisk(ctx context.Context, dir string) (Disk, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return Disk{}, fmt.Errorf("measure the disk: %w", err)
	}
	var times []time.Duration
	for range syncs {
		start := time.Now()
		if _, err = f.Write(payload); err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			break
		}
		times = append(times, time.Since(start))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return Disk{}, fmt.Errorf("measure the disk: %w", err)
	}
	slices.Sort(times)
	return Disk{times[len(times)/2], times[len(times)*99/100]}, nil
}
