//! What a reader noticed and went on in spite of.
//!
//! Each kind is reported once per file, so the list is as short as the list of kinds (times the
//! streams).

use std::fmt;

/// Something wrong in a file that is readable nevertheless.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// The file ends before its media do.
    Truncated {
        /// Where the file ends, in bytes.
        offset: u64,
        /// Bytes that the headers promise beyond it.
        missing: u64,
    },
    /// There is no index, or not for every part: the pictures were found by going through the file.
    IndexMissing {
        /// Where the media begin, in bytes.
        offset: u64,
    },
    /// The index is wrong: the pictures were found by going through the file.
    IndexUnusable {
        /// Where the index is wrong, in bytes.
        offset: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The search for chunks ended before the file did.
    ScanStopped {
        /// Where it ended, in bytes.
        offset: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// Pictures that the index places beyond the end of the file; they were left out.
    PicturesOutside {
        /// How many.
        count: u64,
    },
    /// More chunks than the limit allows; the rest was left out.
    IndexFull {
        /// The limit.
        count_max: usize,
    },
    /// Bytes between pictures that belong to none; they were passed over.
    PassedOver {
        /// Where the first ones are, in bytes.
        offset: u64,
        /// How many there are in all.
        len: u64,
    },
    /// Pictures that are cut or damaged; they were left out.
    PicturesDamaged {
        /// Where the first one is, in bytes.
        offset: u64,
        /// How many.
        count: u64,
    },
    /// Pictures of several sizes.
    SizesDiffer {
        /// The first picture that has another size than picture 0.
        index: u64,
    },
    /// Bytes at the end that are less than one sample of every channel; they were left out.
    PartialBlock {
        /// Where they begin, in bytes.
        offset: u64,
        /// How many there are.
        len: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset, missing } => {
                write!(f, "the file ends at byte {offset}, {missing} bytes before its media do")
            }
            Self::IndexMissing { offset } => {
                write!(f, "no index; the media from byte {offset} on were searched instead")
            }
            Self::IndexUnusable { offset, expected } => {
                write!(f, "the index is wrong at byte {offset} (expected {expected}); ")?;
                write!(f, "the media were searched instead")
            }
            Self::ScanStopped { offset, expected } => {
                write!(f, "the search for media stopped at byte {offset} (expected {expected})")
            }
            Self::PicturesOutside { count } => {
                write!(f, "{count} pictures lie beyond the end of the file and were left out")
            }
            Self::IndexFull { count_max } => {
                write!(f, "more than {count_max} chunks; the rest was left out")
            }
            Self::PassedOver { offset, len } => {
                write!(
                    f,
                    "{len} bytes between pictures, the first at byte {offset}, are no JPEG "
                )?;
                write!(f, "and were passed over")
            }
            Self::PicturesDamaged { offset, count } => {
                write!(f, "{count} pictures are cut or damaged, the first at byte {offset}, ")?;
                write!(f, "and were left out")
            }
            Self::SizesDiffer { index } => {
                write!(f, "picture {index} has another size than the first one")
            }
            Self::PartialBlock { offset, len } => {
                write!(f, "{len} bytes at byte {offset} are no whole sample and were left out")
            }
        }
    }
}
