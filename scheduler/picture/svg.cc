#include "scheduler/picture/svg.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace isthmus::scheduler {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char letter : text) {
        switch (letter) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            out += letter;
        }
    }
    return out;
}

std::string numberText(double value) {
    std::array<char, 64> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                   std::chars_format::fixed, 2);
    std::string text(buffer.data(), end.ptr);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

std::string bytesText(double bytes) {
    constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    std::size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < kUnits.size()) {
        bytes /= 1000;
        ++unit;
    }
    return numberText(bytes) + " " + kUnits[unit];
}

std::string secondsText(double seconds) {
    if (seconds <= 0) return "0 s";
    if (seconds >= 1) return numberText(seconds) + " s";
    if (seconds >= 1e-3) return numberText(1e3 * seconds) + " ms";
    return numberText(1e6 * seconds) + " us";
}

std::string hueOf(std::size_t number, int lightnessPercent) {
    constexpr double kGoldenAngle = 137.508;  // degrees; multiples of it never lie close together
    const double hue = std::fmod(205 + kGoldenAngle * static_cast<double>(number), 360);
    return "hsl(" + numberText(hue) + " 58% " + std::to_string(lightnessPercent) + "%)";
}

Svg::Svg(double width, double height)
    : out_("<svg viewBox=\"0 0 " + numberText(width) + " " + numberText(height) + "\" width=\"" +
           numberText(width) + "\" height=\"" + numberText(height) + "\" role=\"img\">\n") {}

void Svg::box(double x, double y, double width, double height, const std::string& fill,
              const std::string& hint, const char* cssClass) {
    out_ += "<rect x=\"" + numberText(x) + "\" y=\"" + numberText(y) + "\" width=\"" +
            numberText(width) + "\" height=\"" + numberText(height) + "\"";
    if (!fill.empty()) out_ += " fill=\"" + fill + "\"";
    if (*cssClass != '\0') out_ += std::string(" class=\"") + cssClass + "\"";
    out_ += hint.empty() ? "/>\n" : "><title>" + escaped(hint) + "</title></rect>\n";
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, const char* cssClass) {
    constexpr std::array kAnchors = {"start", "middle", "end"};
    out_ += "<text x=\"" + numberText(x) + "\" y=\"" + numberText(y) + "\" text-anchor=\"" +
            kAnchors[static_cast<std::size_t>(anchor)] + "\"";
    if (*cssClass != '\0') out_ += std::string(" class=\"") + cssClass + "\"";
    out_ += ">" + escaped(text) + "</text>\n";
}

void Svg::line(double x, double y, double toX, double toY, const char* cssClass) {
    out_ += "<line x1=\"" + numberText(x) + "\" y1=\"" + numberText(y) + "\" x2=\"" +
            numberText(toX) + "\" y2=\"" + numberText(toY) + "\" class=\"" + cssClass + "\"/>\n";
}

std::string Svg::take() {
    return std::move(out_) + "</svg>\n";
}

}  // namespace isthmus::scheduler
