package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Claim is what a token has to say for a role.
type Claim struct {
	// Name of the claim; a dot leads into an object, as in realm_access.roles.
	Name string
	// Values of which one is enough; of a list, one of its entries.
	Values []string
}

// noRole says that a provider's person has no role here, and which claims were
// looked at. It does not say what was in them.
type noRole struct{ claims []string }

func (e noRole) Error() string {
	return fmt.Sprintf("no role of this router follows from your claim %s", strings.Join(e.claims, ", nor from "))
}

// roleOf is the highest role that claims give.
func (o OIDC) roleOf(claims map[string]any) (Role, error) {
	var looked []string
	for _, each := range []struct {
		role  Role
		claim Claim
	}{{Operate, o.Operate}, {View, o.View}} {
		if each.claim.Name == "" {
			continue
		}
		if each.claim.met(claims) {
			return each.role, nil
		}
		if !slices.Contains(looked, each.claim.Name) {
			looked = append(looked, each.claim.Name)
		}
	}
	return "", noRole{looked}
}

func (c Claim) met(claims map[string]any) bool {
	switch v := lookUp(claims, c.Name).(type) {
	case string:
		return slices.Contains(c.Values, v)
	case []any:
		return slices.ContainsFunc(v, func(each any) bool {
			s, ok := each.(string)
			return ok && slices.Contains(c.Values, s)
		})
	}
	return false
}

// lookUp finds a claim by its whole name, which may hold dots, or below objects.
func lookUp(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	inner, _ := claims[first].(map[string]any)
	return lookUp(inner, rest)
}

// nameOf is who it is, for the record. An address that the provider has not
// verified could be anybody's.
func (o OIDC) nameOf(claims map[string]any) (string, error) {
	claim := cmp.Or(o.NameClaim, "email")
	name, _ := lookUp(claims, claim).(string)
	if verified, said := claims["email_verified"]; claim == "email" && said && verified != true && verified != "true" {
		return "", fmt.Errorf("your provider has not verified your e-mail address; admin.oidc.name_claim may name another claim")
	}
	if name = plainly(name); name == "" {
		return "", fmt.Errorf("your token has no claim %s, by which you are named; admin.oidc.name_claim may name another", claim)
	}
	return name, nil
}
