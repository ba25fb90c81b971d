//! Names of the codecs that are refused, so that the refusal says what was found.
//!
//! What it is not: a list of what is supported; that is decided where a format is checked.
//! Source: Microsoft `mmreg.h` and the FourCC register (names as `ffmpeg` prints them).

use crate::format::FourCc;

/// Name and code of a video codec.
pub(crate) fn video_name(code: FourCc) -> String {
    let name = match &code.0.map(|byte| byte.to_ascii_uppercase()) {
        [0, 0, 0, 0] | b"DIB " | b"RGB " => "uncompressed RGB",
        b"XVID" | b"DIVX" | b"DX50" | b"FMP4" | b"MP4V" | b"M4S2" => "MPEG-4 part 2",
        b"DIV3" | b"DIV4" | b"MP43" | b"MP42" => "Microsoft MPEG-4",
        b"H264" | b"X264" | b"AVC1" | b"DAVC" => "H.264",
        b"HEVC" | b"H265" | b"HVC1" | b"HEV1" => "H.265",
        b"VP80" => "VP8",
        b"VP90" => "VP9",
        b"AV01" => "AV1",
        b"MPG1" | b"MPEG" => "MPEG-1",
        b"MPG2" => "MPEG-2",
        b"DVSD" | b"DV25" | b"DVHD" | b"DVSL" => "DV",
        b"CVID" => "Cinepak",
        b"IV31" | b"IV32" | b"IV41" | b"IV50" => "Indeo",
        b"HFYU" | b"FFVH" => "Huffyuv",
        b"FFV1" => "FFV1",
        b"WMV1" | b"WMV2" | b"WMV3" | b"WVC1" => "Windows Media Video",
        b"YUY2" | b"UYVY" | b"I420" | b"YV12" | b"IYUV" | b"NV12" => "uncompressed YUV",
        b"MJPA" | b"MJPB" | b"MJLS" | b"LJPG" => "another kind of JPEG",
        _ => "an unknown codec",
    };
    format!("{name} ({code})")
}

/// Name and code of an audio codec.
pub(crate) fn audio_name(tag: u16) -> String {
    let name = match tag {
        0x0002 | 0x0011 | 0x0200 => "ADPCM",
        0x0006 => "A-law",
        0x0007 => "mu-law",
        0x0031 => "GSM 6.10",
        0x0050 => "MPEG layer 2",
        0x0055 => "MP3",
        0x00FF | 0x1600 | 0x1610 | 0x706D => "AAC",
        0x0160..=0x0163 => "Windows Media Audio",
        0x2000 => "AC-3",
        0x2001 => "DTS",
        0x674F..=0x6771 => "Vorbis",
        0x704F => "Opus",
        0xF1AC => "FLAC",
        _ => "an unknown codec",
    };
    format!("{name} (format tag 0x{tag:04x})")
}
