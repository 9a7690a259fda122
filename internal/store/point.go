package store

import (
	"database/sql"
	"fmt"
)

// Point is what the history keeps of one step of time at one resolution.
type Point struct {
	Level int   // of resolution
	Step  int64 // number of the step at that level
	Body  []byte
}

// SavePoints keeps points in place of those of the same step, and of each level the
// most that were written last: a clock that was wrong for a while costs neither the
// bound nor the past.
func (s *Store) SavePoints(points []Point, most int) error {
	for _, p := range points {
		if len(p.Body) > MaxBody {
			return fmt.Errorf("store: a point has %d bytes, %d are allowed: %w", len(p.Body), MaxBody, ErrTooLarge)
		}
	}
	return s.do("save_points", func(db *sql.DB) error {
		return tx(db, func(t *sql.Tx) error {
			put, err := t.Prepare("INSERT OR REPLACE INTO point (level, step, body) VALUES (?, ?, ?)")
			if err != nil {
				return err
			}
			defer put.Close()
			levels := map[int]bool{}
			for _, p := range points {
				if _, err := put.Exec(p.Level, p.Step, p.Body); err != nil {
					return err
				}
				levels[p.Level] = true
			}
			for l := range levels {
				_, err := t.Exec(`DELETE FROM point WHERE level = ?1 AND seq <=
					(SELECT seq FROM point WHERE level = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`, l, most)
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// LoadPoints returns every point in the order written.
func (s *Store) LoadPoints() ([]Point, error) {
	var out []Point
	err := s.do("load_points", func(db *sql.DB) error {
		rows, err := db.Query("SELECT level, step, body FROM point ORDER BY seq")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p Point
			if err := rows.Scan(&p.Level, &p.Step, &p.Body); err != nil {
				return err
			}
			out = append(out, p)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
