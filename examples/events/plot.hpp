// Curves as SVG: one panel a tag, one line a run. Nothing is loaded from elsewhere; the same log gives the same bytes.
#pragma once
#include <cstdio>

#include "../checkpoint/output.hpp"
#include "log.hpp"

namespace events {

struct plot_options {
  double smoothing = 0;  // as TensorBoard's slider: 0 none, towards 1 more
  bool logarithmic = false;
  int columns = 2;
};

inline std::string number(double x) {
  char to[40];
  std::snprintf(to, sizeof to, "%.4g", x);
  return to;
}
// As a label of an axis whose ticks are `step` apart (infinity: there is one): with as many digits as tell neighbours
// apart.
inline std::string number(double x, double step) {
  if (x == 0 || !(step > 0) || !std::isfinite(step)) return number(x);
  const auto power_of = [](double v) { return static_cast<int>(std::floor(std::log10(v) + 1e-9)); };
  const int power = power_of(std::abs(x));
  // A step is 1, 2 or 5 times a power of ten, but for what rounding took from it.
  const int digits = std::clamp(power - power_of(1.1 * step) + 1, 4, 17);
  char with_power[40], plain[40];
  std::snprintf(with_power, sizeof with_power, "%.*g", digits, x);
  std::snprintf(plain, sizeof plain, "%.*g", std::clamp(power + 1, digits, 17), x);
  return std::strlen(plain) < std::strlen(with_power) ? plain : with_power;
}
inline std::string coordinate(double x) {
  char to[40];
  std::snprintf(to, sizeof to, "%.1f", x);
  return to;
}
// For XML and HTML: also without the control characters that XML cannot hold.
inline std::string escaped(std::string_view s) {
  std::string out;
  for (const char c : tool::visible(s)) switch (c) {
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '&': out += "&amp;"; break;
    case '"': out += "&quot;"; break;
    default: out += c;
    }
  return out;
}

// Exponential smoothing, without a bias to the first points (TensorBoard's).
inline std::vector<point> smoothed(const std::vector<point>& points, double weight) {
  std::vector<point> out = points;
  double sum = 0, norm = 0;
  for (auto& p : out)
    if (std::isfinite(p.value)) {
      sum = weight * sum + (1 - weight) * p.value, norm = weight * norm + (1 - weight);
      p.value = sum / norm;
    }
  return out;
}

// No more points than can be told apart: of each stretch the lowest and the highest, in their order, among those that
// `height` has a finite number for; one of the others only where a stretch has none of these, as a gap.
template <class Height>
std::vector<point> thinned(const std::vector<point>& points, std::size_t stretches, Height&& height) {
  if (points.size() <= 2 * stretches) return points;
  std::vector<point> out;
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t from = points.size() * i / stretches, to = points.size() * (i + 1) / stretches;
    std::size_t low = from, high = from;
    bool any = false;
    for (std::size_t k = from; k < to; ++k) {
      if (!std::isfinite(height(points[k].value))) continue;
      if (!any || points[k].value < points[low].value) low = k;
      if (!any || points[k].value > points[high].value) high = k;
      any = true;
    }
    out.push_back(points[std::min(low, high)]);
    if (low != high) out.push_back(points[std::max(low, high)]);
  }
  return out;
}

// 1, 2 or 5 times a power of ten: at most `most` of them between the two.
inline std::vector<double> ticks(double from, double to, int most) {
  const double raw = (to - from) / most;
  if (!(raw > 0) || !std::isfinite(raw)) return {from};
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double times : {5.0, 2.0, 1.0})
    if (times * power >= raw) step = times * power;
  std::vector<double> out;
  for (double k = std::ceil(from / step - 1e-9); k * step <= to + 1e-9 * step && out.size() < 50; ++k)
    out.push_back(k * step == 0 ? 0 : k * step);
  return out;
}

// A step: all its digits, or thousands and millions where nothing is lost.
inline std::string step_label(double step) {
  for (const auto& [unit, letter] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (std::abs(step) >= unit && std::fmod(step, unit / 100) == 0 && std::abs(step) >= 1e4)
      return number(step / unit, 0.01) + letter;
  char to[40];
  std::snprintf(to, sizeof to, "%.0f", step);
  return to;
}

// What stands at a tick of a logarithmic axis: a power of ten as such, in letters that stand higher; what is between
// two powers as a number.
inline std::string power_label(double exponent, double step) {
  const double whole = std::round(exponent);
  if (std::abs(exponent - whole) > 1e-9) return number(std::pow(10, exponent), step);
  if (whole >= -2 && whole <= 3) return number(std::pow(10, whole));
  return gradus::text("10<tspan dy=\"-5\" font-size=\"9\">", static_cast<int>(whole), "</tspan>");
}
// Ticks of a logarithmic axis, as exponents: powers of ten; where there are fewer than two between the ends, also 2 and
// 5 times a power, or what a plain axis has.
inline std::vector<double> power_ticks(double from, double to, int most) {
  const auto powers = [&](std::initializer_list<double> times, double step) {
    std::vector<double> out;
    for (double p = std::floor(from / step) * step; p <= to && out.size() < 50; p += step)
      for (const double t : times)
        if (const double at = p + std::log10(t); at >= from - 1e-9 && at <= to + 1e-9) out.push_back(at);
    return out;
  };
  std::vector<double> out = powers({1}, std::max(1.0, std::ceil((to - from) / most)));
  if (out.size() < 2) out = powers({1, 2, 5}, 1);
  if (out.size() < 2) {
    out = ticks(std::pow(10, from), std::pow(10, to), most);
    for (double& v : out) v = v > 0 ? std::log10(v) : from;
  }
  return out;
}

// The text, cut to what is at most so many pixels wide in the font's size, by the widths of a bold sans-serif.
inline std::string fitting(std::string_view s, double pixels, double font_size) {
  double wide = 0;
  std::size_t end = 0;  // of what fits beside the three dots
  for (std::size_t i = 0; i < s.size(); ++i) {
    const auto letter = static_cast<unsigned char>(s[i]);
    if ((letter & 0xC0) == 0x80) continue;  // goes on with a letter
    if (wide + 1.1 * font_size <= pixels) end = i;
    const bool widest = letter >= 0x80 || std::string_view("mwMW@%").find(s[i]) != std::string_view::npos;
    wide += (widest ? 1.1 : letter >= 'A' && letter <= 'Z' ? 0.85 : 0.72) * font_size;
    if (wide > pixels) return std::string(s.substr(0, end)) + "\xE2\x80\xA6";
  }
  return std::string(s);
}

// How many letters a label has, without its markup.
inline std::size_t letters_in(std::string_view label) {
  std::size_t n = 0;
  bool in_markup = false;
  for (const char c : label) {
    in_markup = in_markup || c == '<';
    n += !in_markup;
    in_markup = in_markup && c != '>';
  }
  return n;
}

inline constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#7a5195", "#666666"};
inline constexpr int panel_width = 440, panel_height = 260;

// The panel of one tag, as a group whose corner is at (x, y).
inline std::string panel(const std::vector<run>& runs, const std::string& tag, const plot_options& o, int x, int y) {
  constexpr double right = 14, top = 34, bottom = 34, height = panel_height - top - bottom;
  const auto scaled = [&](double v) {  // NaN: nothing to draw
    if (o.logarithmic) return v > 0 ? std::log10(v) : std::nan("");
    return std::abs(v) < 1e300 ? v : std::nan("");  // the distance of two is still a number
  };
  double low = HUGE_VAL, high = -HUGE_VAL, first = HUGE_VAL, last = -HUGE_VAL;
  for (const auto& r : runs)
    if (const auto at = r.tags.find(tag); at != r.tags.end() && at->second.kind == "scalars")
      for (const auto& p : at->second.points) {
        const auto step = static_cast<double>(p.step);
        first = std::min(first, step), last = std::max(last, step);
        if (const double v = scaled(p.value); std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
      }
  if (low > high) low = 0, high = 1;
  const double alone = o.logarithmic || high == 0 ? 0.5 : 0.5 * std::abs(high);  // one value: as wide as it is large
  const double margin = high > low ? 0.05 * (high - low) : alone;
  low -= margin, high += margin;
  std::vector<double> step_ticks = ticks(first, last, 6);
  if (!(first < last)) step_ticks = {first}, first -= 1, last = first + 2;
  const auto value_ticks = o.logarithmic ? power_ticks(low, high, 5) : ticks(low, high, 5);
  const auto value_at = [&](double tick) { return o.logarithmic ? std::pow(10, tick) : tick; };
  double apart = HUGE_VAL;  // the nearest two
  for (std::size_t i = 1; i < value_ticks.size(); ++i)
    apart = std::min(apart, value_at(value_ticks[i]) - value_at(value_ticks[i - 1]));
  std::vector<std::string> labels;
  std::size_t longest = 0;
  for (const double v : value_ticks) {
    labels.push_back(o.logarithmic ? power_label(v, apart) : number(v, apart));
    longest = std::max(longest, letters_in(labels.back()));
  }
  const double left = std::max(58.0, 8 + 7 * static_cast<double>(longest)), width = panel_width - left - right;
  const auto px = [&](double step) { return left + width * ((step - first) / (last - first)); };
  const auto py = [&](double v) { return top + height * (1 - (v - low) / (high - low)); };

  std::string out = gradus::text("<g transform=\"translate(", x, ",", y, ")\">\n");
  out += gradus::text("<text class=\"title\" x=\"", coordinate(left), "\" y=\"20\">",
                      escaped(fitting(tag, panel_width - left, 13)), "</text>\n");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double v = value_ticks[i];
    const std::string at = coordinate(py(v));
    out += gradus::text("<path class=\"grid\" d=\"M", coordinate(left), " ", at, "H", coordinate(left + width),
                        "\"/><text class=\"y\" x=\"", coordinate(left - 6), "\" y=\"", coordinate(py(v) + 4), "\">",
                        labels[i], "</text>\n");
  }
  for (const double v : step_ticks) {
    if (v != std::floor(v)) continue;  // there are no steps between steps
    const std::string at = coordinate(px(v)), label = step_label(v);
    // In the middle under its line, but not across the panel's edge.
    const double half = 3.5 * static_cast<double>(label.size()) + 2;
    const double middle = std::min(std::max(px(v), half), panel_width - half);
    out += gradus::text("<path class=\"grid\" d=\"M", at, " ", coordinate(top), "V", coordinate(top + height),
                        "\"/><text class=\"x\" x=\"", coordinate(middle), "\" y=\"", coordinate(top + height + 18),
                        "\">", label, "</text>\n");
  }
  const auto curve = [&](const std::vector<point>& points, const char* kind, const char* colour) {
    std::string d, dots;
    bool pen_down = false;
    int together = 0;  // points of a line; one alone is no line
    double x = 0, y = 0;
    const auto end = [&] {
      if (together == 1)
        dots += gradus::text("<circle class=\"", kind, "\" cx=\"", coordinate(x), "\" cy=\"", coordinate(y),
                             "\" r=\"3\" fill=\"", colour, "\"/>\n");
      together = 0, pen_down = false;
    };
    for (const auto& p : thinned(points, static_cast<std::size_t>(width), scaled)) {
      const double v = scaled(p.value);
      if (!std::isfinite(v)) {
        end();  // a gap: NaN, infinity, or no logarithm
        continue;
      }
      x = px(static_cast<double>(p.step)), y = py(v);
      d += gradus::text(pen_down ? "L" : "M", coordinate(x), " ", coordinate(y));
      pen_down = true, ++together;
    }
    end();
    return gradus::text("<path class=\"", kind, "\" stroke=\"", colour, "\" d=\"", d, "\"/>\n", dots);
  };
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const auto at = runs[i].tags.find(tag);
        at != runs[i].tags.end() && at->second.kind == "scalars" && !at->second.points.empty()) {
      const char* colour = colours[i % std::size(colours)];
      if (o.smoothing > 0) out += curve(at->second.points, "faint", colour);
      out += curve(o.smoothing > 0 ? smoothed(at->second.points, o.smoothing) : at->second.points, "curve", colour);
    }
  return out + "</g>\n";
}

inline constexpr std::string_view style =
    "text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:13px}.x{text-anchor:middle;fill:#666}"
    ".y{text-anchor:end;fill:#666}.grid{stroke:#e3e3e3;fill:none}.curve{stroke-width:1.6;"
    "stroke-linejoin:round;stroke-linecap:round}path{fill:none}.faint{stroke-width:1;opacity:.25}";

inline std::string svg(const std::vector<run>& runs, const std::vector<std::string>& tags, const plot_options& o) {
  const int columns = std::max(1, std::min(o.columns, static_cast<int>(tags.size())));
  const int rows = (static_cast<int>(tags.size()) + columns - 1) / columns;
  const int legend = 22 * static_cast<int>(runs.size()) + 10;
  const int width = columns * panel_width, height = rows * panel_height + legend;
  std::string out = gradus::text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
                                 "\" viewBox=\"0 0 ", width, " ", height, "\">\n<style>", style,
                                 "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const int at = static_cast<int>(i);
    out += panel(runs, tags[i], o, at % columns * panel_width, at / columns * panel_height);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const int y = rows * panel_height + 22 * static_cast<int>(i) + 10;
    out += gradus::text("<path stroke=\"", colours[i % std::size(colours)], "\" stroke-width=\"3\" d=\"M58 ", y,
                        "h24\"/><text x=\"90\" y=\"", y + 4, "\">", escaped(fitting(runs[i].name, width - 100, 12)),
                        "</text>\n");
  }
  return out + "</svg>\n";
}

// A page of its own: the picture, and the last values as a table.
inline std::string html(const std::vector<run>& runs, const std::vector<std::string>& tags, const plot_options& o,
                        std::string_view title) {
  std::string out = gradus::text(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>", escaped(title),
      "</title>\n<style>body{font:14px sans-serif;margin:24px}table{border-collapse:collapse;margin-top:16px}td,th{"
      "text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid "
      "#ddd}svg{max-width:100%;height:auto}</style>\n<h1>",
      escaped(title), "</h1>\n", svg(runs, tags, o),
      "<table><tr><th>run<th>tag<th>points<th>last step<th>last value\n");
  for (const auto& r : runs)
    for (const auto& tag : tags)
      if (const auto at = r.tags.find(tag); at != r.tags.end() && !at->second.points.empty())
        out += gradus::text("<tr><td>", escaped(r.name), "<td>", escaped(tag), "<td>", at->second.points.size(), "<td>",
                            at->second.points.back().step, "<td>", number(at->second.points.back().value), "\n");
  return out + "</table></html>\n";
}

}  // namespace events
