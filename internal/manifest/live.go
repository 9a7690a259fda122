package manifest

import "path"

// Live makes an object of what a cluster answered. root is the object's from
// then on.
func Live(root map[string]any) (*Object, []Problem) {
	o := newObject(root)
	o.Origin = Origin{File: path.Join("cluster", o.Namespace, o.Kind, o.Name+".yaml"), Line: 1, Live: true}
	b := bounds{depth: DefaultOptions.MaxDepth, expanded: DefaultOptions.MaxExpanded}
	return o, o.embed(b, words{})
}
