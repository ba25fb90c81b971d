//! Codecs: the two laws of G.711 as tables, and the names of those that are refused.
//!
//! ```text
//!   code  s eee mmmm    sign, segment, step within it; mu-law is stored inverted, A-law with
//!                       every other bit inverted, so that silence is no long run of zeros
//! ```
//!
//! Nothing is compressed here. Sources: ITU-T G.711; Microsoft `mmreg.h` and the FourCC register
//! (names as `ffmpeg` prints them); the audio encodings of Sun's `audio_filehdr.h`.

use crate::format::FourCc;

/// 16 bit samples by their mu-law codes.
pub static MULAW: [i16; 256] = table(true);

/// 16 bit samples by their A-law codes.
pub static ALAW: [i16; 256] = table(false);

const fn table(is_mulaw: bool) -> [i16; 256] {
    let mut table = [0; 256];
    let mut code = 0;
    while code < table.len() {
        table[code] = if is_mulaw { mulaw(code as u8) } else { alaw(code as u8) };
        code += 1;
    }
    table
}

const fn mulaw(code: u8) -> i16 {
    const BIAS: i16 = 0x84;
    let code = !code;
    let magnitude = ((((code & 0x0F) as i16) << 3) + BIAS) << ((code & 0x70) >> 4);
    if code & 0x80 == 0 { magnitude - BIAS } else { BIAS - magnitude }
}

const fn alaw(code: u8) -> i16 {
    let code = code ^ 0x55;
    let step = ((code & 0x0F) as i16) << 4;
    let magnitude = match (code & 0x70) >> 4 {
        0 => step + 8,
        segment => (step + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

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

/// Name and number of an encoding of AU files.
pub(crate) fn au_name(number: u32) -> String {
    let name = match number {
        23 => "G.721 ADPCM",
        24 => "G.722 ADPCM",
        25 => "G.723 ADPCM with 3 bits",
        26 => "G.723 ADPCM with 5 bits",
        8..=22 | 28 | 29 => "something for a signal processor",
        _ => "an unknown codec",
    };
    format!("{name} (encoding {number})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::SampleEncoding;

    #[test]
    fn the_laws_have_the_values_of_the_recommendation() {
        assert_eq!([MULAW[0x00], MULAW[0x7F], MULAW[0x80], MULAW[0xFF]], [-32_124, 0, 32_124, 0]);
        assert_eq!([ALAW[0x2A], ALAW[0xAA], ALAW[0x55], ALAW[0xD5]], [-32_256, 32_256, -8, 8]);
    }

    #[test]
    fn codes_rise_with_their_samples_and_are_symmetric() {
        for code in 0..=0xFE_u8 {
            let next = code + 1;
            assert!(
                code == 0x7F
                    || (MULAW[usize::from(next)] > MULAW[usize::from(code)]) == (code < 0x80)
            );
        }
        for code in 0..0x80_usize {
            assert_eq!(MULAW[code], -MULAW[code + 0x80]);
            assert_eq!(ALAW[code], -ALAW[code + 0x80]);
        }
    }

    #[test]
    fn the_silence_of_each_law_is_its_smallest_sample() {
        assert_eq!(MULAW[usize::from(SampleEncoding::MuLaw.silence())], 0);
        assert_eq!(ALAW[usize::from(SampleEncoding::ALaw.silence())], 8);
        assert!(ALAW.iter().all(|sample| sample.abs() >= 8));
    }
}
