package view

// Density says how many events there are in consecutive slots of time. There
// are at most 256 slots, as short as that allows.
type Density struct {
	From    Time    `json:"from"`     // start of the first slot
	WidthMS int64   `json:"width_ms"` // length of a slot: a power of two; 0 if there are no slots
	Counts  []int64 `json:"counts"`
}

const maxSlots = 256

// Slots begin at multiples of their width since 1970. So two adjacent slots
// merge exactly into one of twice the width, and separate counts can be joined.

// first returns the number of the first slot, counted from 1970.
func (d *Density) first() int64 { return floorDiv(d.From.UnixMilli(), d.WidthMS) }

// slotTime returns the start of a slot, in milliseconds since 1970.
func (d *Density) slotTime(i int) int64 { return (d.first() + int64(i)) * d.WidthMS }

// add counts n events at a time, in milliseconds since 1970.
func (d *Density) add(ms, n int64) { d.addSlot(ms, 1, n) }

// addSlot counts n events in the slot of the given width that begins at ms.
func (d *Density) addSlot(ms, width, n int64) {
	if len(d.Counts) == 0 {
		d.WidthMS, d.From, d.Counts = width, milli(floorDiv(ms, width)*width), []int64{0}
	}
	for d.WidthMS < width {
		d.widen()
	}
	slot := floorDiv(ms, d.WidthMS)
	for first := d.first(); max(slot, first+int64(len(d.Counts))-1)-min(slot, first) >= maxSlots; first = d.first() {
		d.widen()
		slot = floorDiv(ms, d.WidthMS)
	}
	d.cover(slot)
	d.Counts[slot-d.first()] += n
}

// cover extends the slots so that they include one.
func (d *Density) cover(slot int64) {
	first := d.first()
	if before := first - slot; before > 0 {
		d.Counts = append(make([]int64, before), d.Counts...)
		d.From = milli(slot * d.WidthMS)
	}
	for int64(len(d.Counts)) <= slot-first {
		d.Counts = append(d.Counts, 0)
	}
}

// widen doubles the width of the slots.
func (d *Density) widen() {
	first := d.first()
	half := floorDiv(first, 2)
	counts := make([]int64, floorDiv(first+int64(len(d.Counts))-1, 2)-half+1)
	for i, n := range d.Counts {
		counts[floorDiv(first+int64(i), 2)-half] += n
	}
	d.Counts = counts
	d.WidthMS *= 2
	d.From = milli(half * d.WidthMS)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
