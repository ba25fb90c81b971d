//! What the counting allocator says of code whose use of the heap is known.

use dacapo_heap::{Counting, Use, is_counting, measure};
use std::hint::black_box;

#[global_allocator]
static HEAP: Counting = Counting;

fn block(len: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(len))
}

#[test]
fn code_that_allocates_nothing_has_used_nothing() {
    let ((), used) = measure(|| ());
    assert_eq!(used, Use::default());
    assert!(is_counting());
}

#[test]
fn what_is_freed_counts_as_allocated_and_in_the_peak_but_not_as_live() {
    let (kept, used) = measure(|| {
        drop(block(1_000));
        drop(block(300));
        block(200)
    });
    assert_eq!(used, Use { allocated_bytes: 1_500, peak_bytes: 1_000, live_bytes: 200 });
    let ((), used) = measure(|| drop(kept));
    assert_eq!(used, Use { allocated_bytes: 0, peak_bytes: 0, live_bytes: -200 });
}

#[test]
fn a_block_that_grows_counts_its_growth_and_one_that_shrinks_gives_back() {
    let (kept, used) = measure(|| {
        let mut bytes = block(100);
        bytes.resize(100, 1);
        bytes.reserve_exact(400);
        assert_eq!(bytes.capacity(), 500);
        bytes.shrink_to(150);
        bytes
    });
    assert_eq!(kept.capacity(), 150);
    assert_eq!(used, Use { allocated_bytes: 500, peak_bytes: 500, live_bytes: 150 });
}

#[test]
fn zeroed_memory_counts_too() {
    let (kept, used) = measure(|| black_box(vec![0_u8; 4_096]));
    assert_eq!((kept.len(), used.allocated_bytes, used.live_bytes), (4_096, 4_096, 4_096));
}

#[test]
fn measures_nest_and_the_outer_one_sees_the_peak_of_the_inner() {
    let ((inner, before), outer) = measure(|| {
        let before = block(50);
        let (_, inner) = measure(|| drop(block(10_000)));
        (inner, before)
    });
    assert_eq!(inner, Use { allocated_bytes: 10_000, peak_bytes: 10_000, live_bytes: 0 });
    assert_eq!(outer, Use { allocated_bytes: 10_050, peak_bytes: 10_050, live_bytes: 50 });
    drop(before);
}

#[test]
fn a_peak_before_the_measure_is_not_in_it() {
    drop(block(1 << 20));
    let (_, used) = measure(|| drop(block(10)));
    assert_eq!(used.peak_bytes, 10);
}

#[test]
fn a_thread_does_not_see_what_another_one_does() {
    let ((), used) = measure(|| {
        let other = std::thread::spawn(|| measure(|| block(1 << 20)).1);
        let other = other.join().expect("it only allocates");
        assert_eq!(other.live_bytes, 1 << 20);
    });
    // A thread costs its maker something, but not a megabyte.
    assert!(used.allocated_bytes < 1 << 16, "{used:?}");
}

#[test]
fn blocks_of_large_alignment_come_back_whole() {
    #[repr(align(4096))]
    struct Page([u8; 4_096]);
    let (page, used) = measure(|| black_box(Box::new(Page([7; 4_096]))));
    assert_eq!((std::ptr::from_ref(page.as_ref()).addr() % 4_096, page.0[4_095]), (0, 7));
    assert_eq!(used.live_bytes, 4_096);
}
