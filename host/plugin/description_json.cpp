#include "plugin/description_json.hpp"

namespace lhost {
namespace {

using nlohmann::json;

json option_to_json(const OptionSpec& o) {
  return {{"key", o.key},         {"type", o.type},      {"flags", o.flags}, {"doc", o.doc},
          {"def", o.def},         {"min", o.min},        {"max", o.max},     {"replaced_by", o.replaced_by},
          {"choices", o.choices}, {"min_len", o.min_len}};
}
OptionSpec option_from_json(const json& j) {
  OptionSpec o;
  j.at("key").get_to(o.key);
  j.at("type").get_to(o.type);
  j.at("flags").get_to(o.flags);
  j.at("doc").get_to(o.doc);
  j.at("def").get_to(o.def);
  j.at("min").get_to(o.min);
  j.at("max").get_to(o.max);
  j.at("replaced_by").get_to(o.replaced_by);
  j.at("choices").get_to(o.choices);
  j.at("min_len").get_to(o.min_len);
  return o;
}

json component_to_json(const ComponentDescription& c) {
  json options = json::array();
  for (const OptionSpec& o : c.options) options.push_back(option_to_json(o));
  return {{"kind", c.kind},       {"revision", c.revision}, {"name", c.name},     {"version", c.version},
          {"summary", c.summary}, {"flags", c.flags},       {"options", options}, {"defaults", c.defaults}};
}
ComponentDescription component_from_json(const json& j) {
  ComponentDescription c;
  j.at("kind").get_to(c.kind);
  j.at("revision").get_to(c.revision);
  j.at("name").get_to(c.name);
  j.at("version").get_to(c.version);
  j.at("summary").get_to(c.summary);
  j.at("flags").get_to(c.flags);
  j.at("defaults").get_to(c.defaults);
  for (const json& o : j.at("options")) c.options.push_back(option_from_json(o));
  return c;
}

}  // namespace

json to_json(const PluginDescription& p) {
  json components = json::array();
  for (const ComponentDescription& c : p.components) components.push_back(component_to_json(c));
  return {{"path", p.path},       {"name", p.name},   {"version", p.version},
          {"license", p.license}, {"torch", p.torch}, {"components", components}};
}

PluginDescription description_from_json(const json& j) {
  PluginDescription p;
  j.at("path").get_to(p.path);
  j.at("name").get_to(p.name);
  j.at("version").get_to(p.version);
  j.at("license").get_to(p.license);
  j.at("torch").get_to(p.torch);
  for (const json& c : j.at("components")) p.components.push_back(component_from_json(c));
  return p;
}

std::string one_line(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace lhost
