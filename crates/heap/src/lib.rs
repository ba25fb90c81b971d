//! A counting allocator, for tests that bound memory.
//!
//! [`Counting`], the system's allocator with counters per thread, and [`measure`]: it says what a
//! piece of code has asked it for.
//!
//! ```text
//!   #[global_allocator] static HEAP: Counting = Counting;
//!
//!   bytes live |          ____        peak_bytes: from the start to the highest point
//!              |    __   |    |__     live_bytes: what is left at the end
//!        start |___|  |__|       '--- allocated_bytes: every rise, added up
//! ```
//!
//! Memory that C code takes for itself is not seen, and a block that another thread frees counts
//! there.
//!
//! Invariants: counting allocates nothing and never fails; a thread sees its own doing only, so
//! tests in threads of one process do not disturb each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted per thread. Install it with `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

/// What a piece of code has done to the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// All bytes that were asked for, freed ones too. A block that grows counts its growth.
    pub allocated_bytes: u64,
    /// The most bytes that were in use at a time, beyond those at the start.
    pub peak_bytes: u64,
    /// Bytes in use at the end less those at the start; negative when it freed what was there.
    pub live_bytes: i64,
}

#[derive(Clone, Copy)]
struct Counts {
    allocated: u64,
    live: i64,
    peak: i64,
}

thread_local! {
    // Constant and without a destructor: the first use of it in a thread allocates nothing.
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocated: 0, live: 0, peak: 0 }) };
}

fn counts() -> Counts {
    COUNTS.with(Cell::get)
}

/// Notes that `grown` bytes were added and `shrunk` bytes given back.
fn note(grown: usize, shrunk: usize) {
    COUNTS.with(|cell| {
        let mut counts = cell.get();
        counts.allocated = counts.allocated.wrapping_add(grown as u64);
        counts.live = counts.live.wrapping_add(grown as i64).wrapping_sub(shrunk as i64);
        counts.peak = counts.peak.max(counts.live);
        cell.set(counts);
    });
}

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what it
// returned; the counters beside it are plain numbers of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is the same one.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            note(layout.size(), 0);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            note(layout.size(), 0);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from this allocator, so from the system's, with this layout.
        unsafe { System.dealloc(block, layout) };
        note(0, layout.size());
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`, and the caller keeps `size` within the bounds of a layout.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            note(size.saturating_sub(layout.size()), layout.size().saturating_sub(size));
        }
        moved
    }
}

/// Runs `body` and says what it did to the heap of this thread. Without [`Counting`] as the global
/// allocator every figure is 0; see [`is_counting`]. Calls may be nested.
pub fn measure<R>(body: impl FnOnce() -> R) -> (R, Use) {
    let before = counts();
    COUNTS.with(|cell| cell.set(Counts { peak: before.live, ..before }));
    let result = body();
    let after = counts();
    // The peak of whoever measures around this one.
    COUNTS.with(|cell| cell.set(Counts { peak: before.peak.max(after.peak), ..after }));
    let used = Use {
        allocated_bytes: after.allocated.wrapping_sub(before.allocated),
        peak_bytes: after.peak.saturating_sub(before.live).unsigned_abs(),
        live_bytes: after.live.wrapping_sub(before.live),
    };
    (result, used)
}

/// Whether [`Counting`] is the global allocator of this program: a bound on memory that is checked
/// without it holds always and says nothing.
#[must_use]
pub fn is_counting() -> bool {
    let (kept, used) = measure(|| std::hint::black_box(Box::new([0_u8; 64])));
    drop(kept);
    used.allocated_bytes >= 64
}
