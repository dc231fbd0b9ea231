"""The stack file: addresses of existing clusters, and where their secrets are. It is read as strictly as a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, create_model, model_validator

from sinkbench.errors import StackError
from sinkbench.secrets import conceal_misplaced, redacted
from sinkbench.services.access import Access
from sinkbench.stack import Endpoints
from sinkbench.stack.registry import sink_services
from sinkbench.stack.sections import HttpSection, SinkSection, StackSection, Url, kafka_settings, variables
from sinkbench.yamlfile import YamlFile, mistake

Settings = Annotated[dict[str, str], BeforeValidator(kafka_settings)]
Urls = Annotated[
    tuple[Url, ...], Field(strict=False), BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
Variables = Annotated[dict[str, str], BeforeValidator(variables)]


class KafkaSection(StackSection):
    bootstrap: str = Field(min_length=1, description="host:port of one or several brokers, separated by commas")
    settings: Settings = Field(default_factory=dict, description="librdkafka's settings for SASL and TLS", repr=False)


class ConnectSection(HttpSection):
    urls: Urls = Field(min_length=1)
    workers: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="number of workers (default: of urls); Connect does not tell"
    )
    metrics: Urls = Field(
        default=(), description="each worker's metrics: the Prometheus JMX exporter with connect/metrics.yaml"
    )
    variables: Variables = Field(
        default_factory=dict, description="what ${env:NAME} in a connector file stands for", repr=False
    )

    @model_validator(mode="after")
    def _urls_are_distinct(self) -> Self:
        for index, url in enumerate(self.urls):
            if url in self.urls[:index]:
                raise mistake(f"urls lists {url} twice; give 'workers' to say how many there are", "urls", index)
        return self


class LoadgenSection(HttpSection):
    urls: Urls = Field(min_length=1)


class StackFile(StackSection):
    """A stack file without the sinks' sections; `load_stack_file` makes a subclass with these."""

    renamed = {"loadgens": "loadgen.urls"}  # noqa: RUF012
    kafka: KafkaSection
    connect: ConnectSection
    loadgen: LoadgenSection | None = None

    _source: YamlFile = PrivateAttr()

    def where(self, *path: str | int) -> str:
        """`file:line` of a key or list item."""
        return self._source.where(*path)

    @property
    def path(self) -> Path:
        return self._source.path

    @property
    def workers(self) -> int:
        return self.connect.workers or len(self.connect.urls)

    @property
    def loadgen_urls(self) -> dict[str, str]:
        urls = () if self.loadgen is None else self.loadgen.urls
        return {f"loadgen-{number}": url for number, url in enumerate(urls, start=1)}

    def lines(self) -> dict[str, str]:
        """Returns `file:line` of each service's address, by name."""
        return {
            "kafka": self.where("kafka", "bootstrap"),
            **{name: self.where(name, service.section.address_key) for name, service in sink_services().items()},
            **{
                f"connect-{number}": self.where("connect", "urls", number - 1)
                for number in range(1, len(self.connect.urls) + 1)
            },
            **{name: self.where("loadgen", "urls", index) for index, name in enumerate(self.loadgen_urls)},
        }

    def endpoints(self) -> Endpoints:
        """Worker ids are not in the file, so Connect's own (host:port) are used."""
        connect = self.connect
        sinks = {name: section for name in sink_services() if isinstance(section := getattr(self, name), SinkSection)}
        # An index named by the workers' environment would differ from the one that is measured.
        needed = {name: value for section in sinks.values() for name, value in section.variables().items()}
        return Endpoints(
            kafka=self.kafka.bootstrap,
            connect={f"connect-{number}": url for number, url in enumerate(connect.urls, start=1)},
            worker_ids={},
            sinks={name: section.endpoint() for name, section in sinks.items()},
            kafka_settings=self.kafka.settings,
            connect_access=connect.access,
            connect_metrics={f"connect-{number}": url for number, url in enumerate(connect.metrics, start=1)},
            connect_variables={**needed, **connect.variables},
            loadgens=self.loadgen_urls,
            loadgen_access=Access() if self.loadgen is None else self.loadgen.access,
            shared=True,
            stack_file=self.path,
        )


def load_stack_file(path: Path) -> StackFile:
    """Reads a stack file, and conceals its secrets. Raises StackError with a line for each of up to five mistakes."""
    source = YamlFile(path, "stack file", StackError)
    conceal_misplaced(source.content)
    sections = {name: service.section for name, service in sink_services().items()}
    fields: dict[str, Any] = {name: (section | None, None) for name, section in sections.items()}
    model = create_model("StackFile", __base__=StackFile, **fields)
    try:
        file = model.model_validate(source.content, context={"folder": path.absolute().parent})
    except ValidationError as invalid:
        raise StackError(redacted(source.explain(invalid, model))) from None
    file._source = source
    return file
