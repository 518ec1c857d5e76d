package view

// Density says how many events there are in consecutive slots of the recording.
// There are at most 256 slots, as short as that allows.
type Density struct {
	FromMS  int64   `json:"from_ms"`  // position at which the first slot begins
	WidthMS int64   `json:"width_ms"` // length of a slot: a power of two; 0 if there are no slots
	Counts  []int64 `json:"counts"`
}

const maxSlots = 256

// Slots begin at multiples of their width. So two adjacent slots
// merge exactly into one of twice the width, and separate counts can be joined.

// first returns the number of the first slot, counted from position 0.
func (d *Density) first() int64 { return floorDiv(d.FromMS, d.WidthMS) }

// slotStart returns the position at which a slot begins.
func (d *Density) slotStart(i int) int64 { return (d.first() + int64(i)) * d.WidthMS }

// add counts n events at a position.
func (d *Density) add(ms, n int64) { d.addSlot(ms, 1, n) }

// addSlot counts n events in the slot of the given width that begins at ms.
func (d *Density) addSlot(ms, width, n int64) {
	if len(d.Counts) == 0 {
		d.WidthMS, d.FromMS, d.Counts = width, floorDiv(ms, width)*width, []int64{0}
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
		d.FromMS = slot * d.WidthMS
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
	d.FromMS = half * d.WidthMS
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
