package topology

import (
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/peer"
)

// Reading is a gateway's configuration and where it was read.
type Reading struct {
	Gateway *peer.Gateway
	Doc     *manifest.Object // the file, or the document in a ConfigMap
	inside  string           // data[nginx.conf], "" for a file
}

// readings reads the configurations of gateways in an object.
func readings(o *manifest.Object, files *peer.Files) (list []Reading, problems []manifest.Problem) {
	if o.Group == manifest.FileGroup {
		g, notes := peer.Read(o, files)
		if g != nil {
			list = append(list, Reading{Gateway: g, Doc: o})
		}
		return list, notes
	}
	inside := peer.NewFiles(o.Embedded())
	for _, e := range o.Embedded() {
		g, notes := peer.Read(e, inside)
		if g == nil {
			continue
		}
		key := strings.TrimPrefix(e.Name, o.Name+"/")
		list = append(list, Reading{g, e, "data[" + key + "]"})
		problems = append(problems, notes...)
	}
	return list, problems
}

// LeadsToModels is the product of the first configuration that leads to a model,
// "" for none.
func LeadsToModels(list []Reading) string {
	for _, r := range list {
		for _, route := range r.Gateway.Routes {
			if route.Models != "" {
				return r.Gateway.Product
			}
		}
	}
	return ""
}

// readGateways reads all configurations once; what could not be read of them is
// noted when they lead to models.
func (g *Graph) readGateways() {
	files := peer.NewFiles(g.all)
	for _, o := range g.all {
		if o.Group != manifest.FileGroup && len(o.Embedded()) == 0 {
			continue
		}
		list, problems := readings(o, files)
		g.gateways[o] = list
		if LeadsToModels(list) != "" || o.Group == manifest.FileGroup {
			g.problems = append(g.problems, problems...)
		}
	}
}

// Readings are the configurations of gateways that an object holds.
func (g *Graph) Readings(o *manifest.Object) []Reading { return g.gateways[o] }

// At is the path from the object of what stands at a path of the configuration.
func (r Reading) At(path string) string {
	switch {
	case r.inside == "":
		return path
	case path == "":
		return r.inside
	case strings.HasPrefix(path, "["):
		return r.inside + path
	}
	return r.inside + "." + path
}

// Unread is what of the configurations could not be read.
func (g *Graph) Unread() []manifest.Problem { return g.problems }
