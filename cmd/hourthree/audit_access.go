package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/render"
)

func auditAccess() *cobra.Command {
	var in auditInput
	var namespaced, noConfigMaps bool
	var namespaces []string
	c := &cobra.Command{
		Use: "access", Short: "Show what a cluster lets be read, and the smallest role that is enough", Args: cobra.NoArgs,
		Long: `Try to list one object of each kind that the checks need. What can be read and
what is missing goes to standard error, the smallest role that lets everything
be read to standard output:

  hourthree audit access --context CONTEXT | kubectl apply -f -

No role lets Secrets be read. ConfigMaps may hold keys: --no-configmaps leaves
them out, and the checks that need them are then not evaluated.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if namespaced && len(namespaces) == 0 {
				return errors.New("--namespaced: needs --namespace, the ones to read")
			}
			if err := in.check(c); err != nil {
				return err
			}
			in.namespaces = namespaces
			k, err := collect.Open(in.options(nil, nil))
			if err != nil {
				return err
			}
			defer k.Close()
			rights, err := k.Access(c.Context())
			if err != nil {
				return err
			}
			if err := render.Access(c.ErrOrStderr(), len(rights), collect.Gaps(rights), screenOf(c.ErrOrStderr())); err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(collect.Roles(rights, collect.RoleOptions{Namespaces: onlyIf(namespaced, namespaces), WithoutConfigMaps: noConfigMaps}))
			return err
		},
	}
	in.addCluster(c)
	c.Flags().StringSliceVarP(&namespaces, "namespace", "n", nil, "try these namespaces alone")
	c.Flags().BoolVar(&namespaced, "namespaced", false, "write a Role for each --namespace in place of a ClusterRole")
	c.Flags().BoolVar(&noConfigMaps, "no-configmaps", false, "leave ConfigMaps out of the role")
	return c
}

func onlyIf(yes bool, list []string) []string {
	if yes {
		return list
	}
	return nil
}
