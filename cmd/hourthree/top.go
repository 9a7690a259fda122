package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hourthree/hourthree/internal/top"
)

// plainWidth is the width of a picture that no terminal shows, in columns.
const plainWidth = 80

func topCommand() *cobra.Command {
	var router operatorListener
	var once bool
	every := 2 * time.Second
	c := &cobra.Command{
		Use: "top", Short: "Show a running router in the terminal, live", Args: cobra.NoArgs,
		Long: `Show a running router in the terminal, live: whether it is us or them, what is
wrong and who is suspected, targets by domain, workloads, the actions in force and
the rollout. It only reads. The key ? says which keys there are; NO_COLOR turns
colours off.

Without a terminal, or with --once, one picture is printed as plain text.

Exit 3: with --once, no router answers.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if every < 500*time.Millisecond || every > time.Minute {
				return errors.New("--every must be 500ms to 1m")
			}
			get := func(ctx context.Context, path string) ([]byte, error) {
				text, err := router.get(ctx, path)
				if errors.Is(err, errNotServed) {
					return nil, top.ErrAbsent
				}
				return text, err
			}
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			in, out := ttyOf(c.InOrStdin()), ttyOf(c.OutOrStdout())
			if once || in == nil || out == nil {
				return picture(ctx, c.OutOrStdout(), router.base(), get, columns(out))
			}
			plain := os.Getenv("NO_COLOR") != ""
			return top.Run(ctx, top.Options{Router: router.base(), Get: get, Every: every, Colour: !plain, Input: in, Output: out, Env: os.Environ()})
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&once, "once", false, "print one picture and exit")
	c.Flags().DurationVar(&every, "every", every, "time between two pictures, 500ms to 1m")
	return c
}

// picture prints one. Rates need two of them.
func picture(ctx context.Context, out io.Writer, router string, get top.Get, width int) error {
	p := &top.Picture{Router: router}
	for i := range 2 {
		if i > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
		var err error
		if p, err = top.Once(ctx, get, p, time.Now()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, top.Draw(p, top.View{Width: width, Now: time.Now()}))
	return err
}

// ttyOf is the terminal behind a reader or writer, nil for none.
func ttyOf(v any) *os.File {
	if f, ok := v.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// columns is the width of a terminal, or that of plain text.
func columns(f *os.File) int {
	if f != nil {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return plainWidth
}
