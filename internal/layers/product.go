package layers

import "slices"

// Most is the largest product that is told apart; more counts as Most.
const Most = 1_000_000_000

// Product is what one class of failure can make of one call.
type Product struct {
	Class Class
	// Single are the calls at the far end that one call of the client can become,
	// the first one included; from 1 to Most.
	Single int
	// PerTarget are those of them that one target gets, the others being the
	// fallbacks'.
	PerTarget int
	// Steady are the calls for each call of the client when many fail for long
	// and budgets are spent; Single where no layer has a budget.
	Steady float64
	// Budgets are the indexes of the layers whose budget makes Steady smaller.
	Budgets []int
	// Repeats are the indexes of the layers that repeat, outermost first.
	Repeats []int
	// From is the layer behind which the failure arises, -1 without layers. Those
	// further in have not been reached.
	From int
}

// Multiply gives the product for every class, in the order of Classes, of the
// layers from the client's, first, to the one before the model, last. A failure
// may arise behind any layer, and the layers outside see what that one hands
// them; the worst place counts.
func Multiply(path []Layer) []Product {
	var list []Product
	for _, c := range Classes() {
		worst := Product{Class: c, Single: 1, PerTarget: 1, Steady: 1, From: -1}
		for from := range path {
			p := chain(path, from, c)
			if p.Steady > worst.Steady {
				worst.Steady, worst.Budgets = p.Steady, p.Budgets
			}
			worst.PerTarget = max(worst.PerTarget, p.PerTarget)
			if p.Single >= worst.Single {
				worst.Single, worst.Repeats, worst.From = p.Single, p.Repeats, from
			}
		}
		list = append(list, worst)
	}
	return list
}

// chain is the product for a failure that arises behind path[from].
func chain(path []Layer, from int, c Class) Product {
	p := Product{Class: c, Single: 1, PerTarget: 1, Steady: 1, From: from}
	for i := from; i >= 0; i-- {
		l := path[i]
		attempts := l.For(c)
		all := times(attempts, l.targets())
		factor := float64(all)
		if l.Budget > 0 && 1+l.Budget < factor {
			factor = 1 + l.Budget
			p.Budgets = append(p.Budgets, i)
		}
		if attempts > 1 {
			p.Repeats = append(p.Repeats, i)
		}
		p.Single = times(p.Single, all)
		p.PerTarget = times(p.PerTarget, attempts)
		p.Steady = min(p.Steady*factor, Most)
		c = l.hands(c)
	}
	slices.Reverse(p.Repeats)
	slices.Reverse(p.Budgets)
	return p
}

// Worst is the product with the most calls; of equal ones that of the class that
// says most about an overload.
func Worst(list []Product) Product {
	order := []Class{Server, Capacity, Reset, Connect}
	var worst Product
	for _, c := range order {
		for _, p := range list {
			if p.Class == c && p.Single > worst.Single {
				worst = p
			}
		}
	}
	return worst
}

// Repeated are the classes that more than one layer repeats.
func Repeated(list []Product) []Class {
	var classes []Class
	for _, p := range list {
		if len(p.Repeats) > 1 {
			classes = append(classes, p.Class)
		}
	}
	return classes
}

// times multiplies numbers from 1 on and stays at Most.
func times(a, b int) int {
	a, b = min(max(a, 1), Most), min(max(b, 1), Most)
	if a > Most/b {
		return Most
	}
	return a * b
}

// add adds numbers from 0 on and stays at Most.
func add(a, b int) int { return min(min(a, Most)+min(b, Most), Most) }
